"""The page of trust is made from the records, every check has a short run, and failures are counted."""

import pytest

import check
import page


def tiny(failed):
    found = check.Found([check.Figure("days", 7, failed, "one week")], [("Days", ["day"], [["Monday"]])])
    return check.Check("tiny", "Days of a week", "A week has seven days.", lambda long: found, ("Other weeks.",))


def test_a_failed_case_is_the_exit_status(capsys, tmp_path):
    assert check.main(tiny(0), [], tmp_path) == 0
    assert check.main(tiny(2), [], tmp_path) == 1
    assert "days: 7 tried, 2 failed; one week" in capsys.readouterr().out
    assert not list(tmp_path.iterdir())


def test_a_long_run_is_recorded_and_shown(tmp_path):
    before = page.page([tiny(0)], tmp_path)
    assert "no long run yet" in before
    assert "To be shown: A week has seven days." in before
    check.main(tiny(0), ["--long"], tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["tiny.json"]
    text = page.page([tiny(0)], tmp_path)
    assert "| days | 7 | 0 | one week |" in text
    assert "To be shown" not in text
    assert "`python trust/tiny.py --long`" in text
    assert "What this does not show: Other weeks." in text


def test_the_page_is_made_from_the_records():
    assert page.page(page.all_checks()) == page.PAGE.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", [path.stem for path in check.RECORDS.glob("*.json")])
def test_no_published_run_has_failures(name):
    record = check.read_record(name)
    assert record["check"] == name
    assert not any(figure["failed"] for figure in record["figures"])
