"""Explain the logs below a folder with Spark, one report per line in text files below the second folder.

    spark-submit spark.py /shared/logs /shared/reports && torchdoctor stats /shared/reports/part-*

Every executor needs torchdoctor, pandas and pyarrow in its Python, and the folder. For logs in an object
store use spark.read.format("binaryFile") and report_lines(frame["path"], frame["content"]).
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from typing import Any

from torchdoctor.fleet.batch import report_lines
from torchdoctor.intake import files_below


def explain(frames: Iterable[Any]) -> Iterator[Any]:
    """For ``mapInPandas``: frames with a column ``path`` become frames with a column ``report``."""
    for frame in frames:
        yield type(frame)({"report": report_lines([str(path) for path in frame["path"]])})


def main() -> None:
    from pyspark.sql import SparkSession

    session = SparkSession.builder.appName("torchdoctor").getOrCreate()
    paths = [(path,) for path in files_below(sys.argv[1])]
    parts = max(1, len(paths) // 256)
    frame = session.createDataFrame(paths, "path string").repartition(parts)
    frame.mapInPandas(explain, "report string").write.text(sys.argv[2])
    session.stop()


if __name__ == "__main__":
    main()
