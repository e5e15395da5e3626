# thresher for a user without rights, on a read-only file system. Commands are in docs/production.md.
FROM python:3.11-slim AS build
COPY . /source
RUN pip wheel --no-cache-dir --no-deps --wheel-dir /wheels /source

FROM python:3.11-slim
COPY --from=build /wheels /wheels
RUN pip install --no-cache-dir "$(ls /wheels/thresher-*.whl)[sklearn,serve]" && rm -r /wheels
# Compiled code belongs to root, so that whoever runs the image trusts it. A processor of another kind compiles anew.
ENV THRESHER_CACHE_DIR=/opt/thresher
WORKDIR /data
RUN --mount=from=build,source=/source/examples/data,target=/data \
    for run in rcv1_train2000.dat.gz 'prices.svm --loss squared' 'newsgroups_test.jsonl.gz --label group --text text' \
      'criteo_first200.txt.gz --format tsv --no-header --label 1'; do set -- $run \
 && thresher train "$@" -m /tmp/model -q --no-cache && thresher predict /tmp/model "$1" > /tmp/out \
 && thresher evaluate /tmp/model "$1" > /tmp/out || exit; done; \
    rm /tmp/model /tmp/out && chmod -R a+rX,go-w /opt/thresher
USER 65534
ENTRYPOINT ["thresher"]
