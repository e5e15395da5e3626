"""``--group``: on the command line, in the record, and when training is resumed."""

from tests.cli.conftest import Thresher

LINES = "".join(f"{1 if k % 5 == 0 else -1} qid:{k // 5} {k % 7 + 1}:1 {k % 11 + 8}:1\n" for k in range(300))


def test_the_command_that_info_prints_keeps_groups(thresher: Thresher) -> None:
    with open("rows.svm", "w") as file:
        file.write(LINES)
    train = "train rows.svm -q --rule ftrl:l1=0.01 --holdout 0.2"
    found = thresher(f"{train} --group qid -m one.model --json").json
    assert found["holdout_examples"] % 5 == 0
    assert found["holdout_examples"] + found["examples"] == 300
    command = thresher("info one.model --json").json["command"]
    assert " --group qid " in command
    again = command.replace("thresher ", "").replace("DATA", "rows.svm").replace("MODEL", "two.model")
    thresher(f"{again} -q")
    plain = thresher(f"{train} -m plain.model --json").json
    assert plain["holdout_examples"] == 60
    one, two = (thresher(f"evaluate {name}.model rows.svm --json").json for name in ("one", "two"))
    assert one == two


def test_a_column_of_groups_is_no_feature_and_fresh_data_need_none(thresher: Thresher) -> None:
    rows = [f"{k % 2},user{k // 4},{k % 7}" for k in range(80)]
    with open("rows.csv", "w") as file:
        file.write("\n".join(["label,user,x", *rows]) + "\n")
    with open("new.csv", "w") as file:
        file.write("label,x\n1,3\n0,2\n")
    thresher("train rows.csv -q --rule ftrl:l1=0.001 --group user --holdout 0.2 -m m --passes 2")
    assert len(thresher("predict m new.csv").out.split()) == 2
    assert thresher("evaluate m new.csv --json").json["examples"] == 2
    for data in ("new.csv", "rows.csv"):
        ran = thresher(f"train {data} -q --init m -m m3 --json")
        assert (ran.status, ran.json["warnings"], ran.json["features_seen"]) == (0, [], 1), ran.err
    assert thresher("train rows.csv -q --init m -m m3 --ignore user --json").json["features_seen"] == 1
    ran = thresher("train rows.csv -q --init m -m m3 --group user --holdout 0.2 --json")
    assert (ran.status, ran.json["holdout_examples"] % 4) == (0, 0), ran.err
    for command in ("train rows.csv -m m2", "cv rows.csv"):
        assert "no column is called 'usr'" in thresher(f"{command} --group usr").err
