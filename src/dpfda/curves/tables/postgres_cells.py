"""What a cursor of PostgreSQL makes of cells: plain types as they are, all others as the server writes them.

The driver's own conversions fail at single cells (a date before Christ, a timestamp of infinity), and polars at others (NaN
among decimals). A text fails nowhere, and what it says is decided where cells are read.
"""

from __future__ import annotations

from typing import Any

CLIENT_ENCODING = "utf8"
_PLAIN = ("bool", "int2", "int4", "int8", "float4", "float8")  # every value of these has a Python object


def read_as_text(connection: Any) -> None:
    """Make the cursors of this connection of SQLAlchemy read so; moments are written in UTC, the year first."""
    from psycopg.adapt import Loader
    from psycopg.pq import Format

    class Text(Loader):
        def load(self, data: Any) -> Any:
            return bytes(data).decode(errors="replace")

    class Number(Text):
        """Without trailing zeros of its fraction, as by ADBC."""

        def load(self, data: Any) -> Any:
            text = super().load(data)
            return text.rstrip("0").rstrip(".") if "." in text else text

    class Moment(Text):
        """Without the zone, which is UTC."""

        def load(self, data: Any) -> Any:
            return super().load(data).removesuffix("+00")

    class Bytes(Loader):
        """The bytes themselves, of which the server writes hexadecimal digits behind two letters."""

        def load(self, data: Any) -> Any:
            return bytes.fromhex(bytes(data)[2:].decode())

    connection.exec_driver_sql("SET LOCAL TIME ZONE 'UTC'")
    connection.exec_driver_sql("SET LOCAL datestyle = 'ISO, YMD'")
    connection.exec_driver_sql("SET LOCAL bytea_output = 'hex'")
    adapters = connection.connection.driver_connection.adapters
    special = {"numeric": Number, "timestamptz": Moment, "bytea": Bytes}
    adapters.register_loader(0, Text)  # of a type that the driver does not know
    for kind in adapters.types:
        if kind.name not in _PLAIN:
            loader = special.get(kind.name, Text)
            assert loader.format == Format.TEXT
            adapters.register_loader(kind.oid, loader)
            adapters.register_loader(kind.array_oid, Text)
