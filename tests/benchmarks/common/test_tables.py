from benchmarks.common import tables


def test_columns_are_padded_and_numbers_are_right_aligned():
  assert tables.markdown(["name", "steps/s"], [["a", "1,000"], ["long", "2"]]) == (
    "| name | steps/s |\n| ---- | ------: |\n| a    |   1,000 |\n| long |       2 |"
  )
