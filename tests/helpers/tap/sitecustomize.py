"""Loaded by the coordinator's processes in tests: records every message that arrives there, before anything decodes it."""

import importlib.abc
import importlib.machinery
import os
import sys
import threading

_TARGET = "nvflare.fuel.f3.sfm.conn_manager"
_LOCK = threading.Lock()


def _record(data):
    with _LOCK, open(os.environ["DPFDA_TAP"], "ab") as file:
        file.write(bytes(data))


class _Finder(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name != _TARGET:
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path)
        loader = spec.loader
        execute = loader.exec_module

        def exec_module(module):
            execute(module)
            process = module.ConnManager.process_frame

            def recorded(manager, sfm_conn, frame, *rest, **named):
                _record(frame)
                return process(manager, sfm_conn, frame, *rest, **named)

            module.ConnManager.process_frame = recorded

        loader.exec_module = exec_module
        return spec


if os.environ.get("DPFDA_TAP"):
    sys.meta_path.insert(0, _Finder())
