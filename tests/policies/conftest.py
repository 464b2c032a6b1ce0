"""The marker of tests that compare a policy with an independent implementation; test_admission.py reads it."""


def pytest_configure(config):
    config.addinivalue_line(
        "markers",
        "independent(*policies): the test compares these policies, by class name, with a slow implementation that shares no code",
    )
