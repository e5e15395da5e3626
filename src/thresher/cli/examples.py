"""The examples at the end of each command's help. The tests run them, in this order, in one folder."""

from __future__ import annotations

import re

_LINES = """\
thresher train train.svm -m my.model --holdout 0.2
thresher train clicks.csv -m clicks.model --label click --passes 3 --order once --names
zcat train.svm.gz | thresher train - -m piped.model --rule ftrl:alpha=0.5,l1=1
thresher path train.svm -m front.model
thresher path train.svm -m small.model --choose nnz:100 --plot front.svg --table front.tsv
thresher path train.svm -m wider.model --l1 0.1:10:6 --holdout test.svm
thresher cv train.svm --folds 5
thresher cv train.svm --l1 0.5:4:4 --choose 1se -m best.model
thresher cv train.svm --rule pa-i --folds 3
thresher tune train.svm -m tuned.model
thresher tune train.svm -m tuned.model --rules ft-ftrl --budget 16
thresher tune train.svm -m tuned.model --budget 16 --holdout test.svm
thresher select train.svm -m selected.model
thresher select train.svm -m kept.model --false 2 --keep
thresher select clicks.csv -m stable.model --label click --bags 16 --names --table stable.tsv
thresher boost train.svm -m boosted.model --l1 1
thresher boost train.svm -m boosted.model --loss logistic --l1 0.5 --l2 0.1
thresher boost clicks.csv -m boosted.model --label click --method parallel
thresher predict my.model test.svm
thresher predict front.model test.svm --choose 1se --output probability -o predictions.txt
zcat train.svm.gz | thresher predict my.model - --output label
thresher evaluate my.model test.svm
thresher evaluate my.model test.svm --json
thresher evaluate clicks.model clicks.csv --on-error skip
thresher serve my.model
thresher serve clicks.model --port 9000 --token secret.txt
thresher serve my.model --learn --log events --wait 1h --unlabelled negative --shadow ftrl
thresher follow http://127.0.0.1:8000 -m copy.model
thresher follow http://127.0.0.1:8000 -m copy.model --once
thresher follow https://clicks.example.com -m copy.model --every 1m --token secret.txt
thresher export my.model --to c -o model.c
thresher export clicks.model --to js -o model.js
thresher export clicks.model --to json > model.json
thresher report my.model
thresher report my.model test.svm -o report.html
thresher report clicks.model clicks.csv --slice hour
thresher weights my.model
thresher weights my.model --top 20
thresher weights clicks.model > weights.tsv
thresher choose front.model 1se -m sparse.model
thresher choose front.model nnz:100 -m small.model --json
thresher choose front.model 3 -m third.model
thresher info my.model
thresher info my.model --json
thresher info front.model
thresher log clicks.log
thresher log clicks.log --last 5
thresher log clicks.log --cut 100
thresher diff my.model small.model
thresher diff my.model small.model --top 5
thresher diff my.model small.model --json > changes.json
thresher name clicks.model clicks.csv
thresher name clicks.model clicks.csv -o named.model
thresher name clicks.model clicks.csv --json
thresher warm
thresher warm --formats csv --losses squared
thresher warm --rules ftrl,pa-i --losses hinge
thresher cache
thresher cache --clear
THRESHER_CACHE_DIR=/tmp/cache thresher cache
thresher from-vw 'vw -d train.vw -f vw.model --loss_function logistic -b 24'
thresher from-vw -- vw train.vw --passes 3 -c -q ua --ngram t2 --ftrl
thresher from-vw 'vw -t -i vw.model test.vw -p predictions.txt'
thresher rules
thresher rules ft-ftrl
thresher rules truncated-gradient
thresher losses
thresher losses logistic
thresher losses huber
thresher rates
thresher rates power
thresher rates inverse-sqrt
"""
EXAMPLES: dict[str, list[str]] = {}
"""By command name"""
for _line in _LINES.splitlines():
    EXAMPLES.setdefault(re.findall(r"thresher ([\w-]+)", _line)[0], []).append(_line)
