"""Hands tests to the processes of `pytest -n`, as xdist does with ``--dist loadgroup``, in time that does not grow with the run.

After each test, xdist counts what a process has still to do among all that it was ever given, and searches its name in the list of
all tests. With 13,000 tests, that takes 8 seconds of processor time, during which other processes may wait for their next test.
"""

from xdist.scheduler import LoadGroupScheduling


class Scheduling(LoadGroupScheduling):
    """Forgets what is done, and finds names in a dict."""

    def add_node_collection(self, node, collection):
        super().add_node_collection(node, collection)
        if node in self.registered_collections:
            self.registered_collections[node] = Indexed(self.registered_collections[node])

    def mark_test_complete(self, node, item_index, duration=0):
        super().mark_test_complete(node, item_index, duration)
        group = self._split_scope(self.registered_collections[node][item_index])
        if all(self.assigned_work[node][group].values()):
            del self.assigned_work[node][group]


class Indexed(list):
    """A list of different names."""

    def __init__(self, names):
        super().__init__(names)
        self._places = {name: place for place, name in enumerate(self)}

    def index(self, name):
        return self._places[name]
