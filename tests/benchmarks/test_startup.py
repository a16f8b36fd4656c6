import pytest

from benchmarks import startup


@pytest.mark.slow
def test_events_of_a_start_are_in_order(capsys):
  startup.main(["--configs", "debug", "--repeats", "1"])
  lines = [line for line in capsys.readouterr().out.splitlines() if "|" in line]
  rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]
  assert [name for name, *_ in rows] == ["debug"]
  for _, *cells in rows:
    seconds = dict(zip(startup.COLUMNS, map(float, cells), strict=True))
    *events, second_update = [seconds[name] for name in startup.COLUMNS]
    assert 0 < events[0] and events == sorted(events)
    # The second update does not compile again.
    assert 0 < second_update < 0.5 * seconds["first_update"]
