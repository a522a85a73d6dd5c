"""The set-up's decisions, on machines that are made up: nothing is installed here."""

from __future__ import annotations

import subprocess
import sys
import venv
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from tools import environment_state, setup_environment, system_packages
from tools.environment_state import Checkout, damaged_packages, environment_fault
from tools.setup_environment import SetupError, ensure_system_packages, is_offer_missing
from tools.system_packages import Probes, Purpose

DEBIAN_12 = {"ID": "debian", "VERSION_ID": "12"}
ALL_LIBRARIES = {**system_packages.QT_LIBRARIES, **system_packages.X11_LIBRARIES}


def make_probes(
    *,
    lacking: frozenset[str] = frozenset(),
    programs: frozenset[str] = frozenset({"g++", "apt-get"}),
    os_release: dict[str, str] | None = None,
    environ: dict[str, str] | None = None,
) -> Probes:
    """A machine that has everything but what ``lacking`` names."""
    return Probes(
        library_loads=lambda name: name not in lacking,
        program_path=lambda name: f"/usr/bin/{name}" if name in programs else None,
        has_python_headers=lambda: "Python.h" not in lacking,
        has_ensurepip=lambda: "ensurepip" not in lacking,
        apt_knows=lambda _name: False,
        python_package="python3",
        os_release=DEBIAN_12 if os_release is None else os_release,
        environ={} if environ is None else environ,
    )


class TestFindMissing:
    def test_a_complete_machine_lacks_nothing(self) -> None:
        assert system_packages.find_missing(make_probes(), has_environment=False) == []

    @pytest.mark.parametrize("library", ALL_LIBRARIES)
    def test_each_library_is_named_with_its_package(self, library: str) -> None:
        probes = make_probes(lacking=frozenset({library}))

        missing = system_packages.find_missing(probes, has_environment=True)

        assert [(entry.what, entry.package) for entry in missing] == [
            (library, ALL_LIBRARIES[library])
        ]

    def test_a_bare_debian_needs_venv_libraries_compiler_and_headers(self) -> None:
        probes = make_probes(
            lacking=frozenset({*ALL_LIBRARIES, "ensurepip", "Python.h"}),
            programs=frozenset({"apt-get"}),
        )

        missing = system_packages.find_missing(probes, has_environment=False)

        assert [entry.package for entry in missing] == [
            "python3-venv",
            *ALL_LIBRARIES.values(),
            "g++",
            "python3-dev",
        ]

    def test_an_environment_that_is_there_needs_no_ensurepip(self) -> None:
        probes = make_probes(lacking=frozenset({"ensurepip"}))

        assert system_packages.find_missing(probes, has_environment=True) == []

    def test_a_second_python_has_packages_of_its_own_name(self) -> None:
        probes = replace(
            make_probes(lacking=frozenset({"ensurepip", "Python.h"})), python_package="python3.12"
        )

        missing = system_packages.find_missing(probes, has_environment=False)

        assert [entry.package for entry in missing] == ["python3.12-venv", "python3.12-dev"]

    def test_the_compiler_asked_for_is_the_one_looked_for(self) -> None:
        probes = make_probes(environ={"CXX": "clang++ -stdlib=libc++"})

        (missing,) = system_packages.find_missing(probes, has_environment=True)

        assert missing.what == "the C++ compiler clang++"
        assert missing.purpose is Purpose.COMPILER


class TestPackageNames:
    @pytest.mark.parametrize(
        ("os_release", "name"),
        [
            ({"ID": "debian", "VERSION_ID": "12"}, "libglib2.0-0"),
            ({"ID": "debian", "VERSION_ID": "13"}, "libglib2.0-0t64"),
            ({"ID": "ubuntu", "VERSION_ID": "22.04"}, "libglib2.0-0"),
            ({"ID": "ubuntu", "VERSION_ID": "24.04"}, "libglib2.0-0t64"),
        ],
    )
    def test_the_renamed_library(self, os_release: dict[str, str], name: str) -> None:
        probes = make_probes(os_release=os_release)

        assert system_packages.local_package_name("libglib2.0-0", probes) == name

    @pytest.mark.parametrize("os_release", [{}, {"ID": "linuxmint", "VERSION_ID": "22"}])
    @pytest.mark.parametrize(
        ("known", "name"), [(True, "libglib2.0-0t64"), (False, "libglib2.0-0")]
    )
    def test_another_system_is_asked(
        self, os_release: dict[str, str], *, known: bool, name: str
    ) -> None:
        probes = replace(make_probes(os_release=os_release), apt_knows=lambda _name: known)

        assert system_packages.local_package_name("libglib2.0-0", probes) == name

    def test_other_names_stay(self) -> None:
        probes = make_probes(os_release={"ID": "debian", "VERSION_ID": "13"})

        assert system_packages.local_package_name("libgl1", probes) == "libgl1"

    def test_os_release_is_read_with_its_quotes(self, tmp_path: Path) -> None:
        path = tmp_path / "os-release"
        path.write_text('# comment\nID=debian\nVERSION_ID="12"\nPRETTY_NAME="A = B"\n')

        fields = system_packages.parse_os_release(path)

        assert fields == {"ID": "debian", "VERSION_ID": "12", "PRETTY_NAME": "A = B"}
        assert system_packages.parse_os_release(tmp_path / "none") == {}


class TestInstalling:
    def test_root_needs_nothing_before_apt(self) -> None:
        assert system_packages.apt_prefix(make_probes(), user_id=0) == []

    def test_without_apt_or_sudo_nothing_may_be_installed(self) -> None:
        without_apt = make_probes(programs=frozenset({"g++"}))

        assert system_packages.apt_prefix(without_apt, user_id=0) is None
        assert system_packages.apt_prefix(make_probes(), user_id=1000) is None

    def test_what_is_missing_is_installed_and_looked_for_again(
        self, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
    ) -> None:
        lacking = {"libGL.so.1", "libEGL.so.1"}
        asked: list[list[str]] = []

        def install(packages: list[str], prefix: list[str]) -> bool:
            asked.append([*prefix, *packages])
            lacking.clear()
            return True

        monkeypatch.setattr(system_packages, "apt_prefix", lambda _probes, _user: ["sudo", "-n"])
        monkeypatch.setattr(system_packages, "install_packages", install)
        probes = replace(make_probes(), library_loads=lambda name: name not in lacking)

        ensure_system_packages(probes, has_environment=True)

        assert asked == [["sudo", "-n", "libgl1", "libegl1"]]
        assert "This command installs it" not in capfd.readouterr().err

    def test_without_rights_the_one_command_is_printed(
        self, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
    ) -> None:
        monkeypatch.setattr(system_packages, "apt_prefix", lambda _probes, _user: None)
        probes = make_probes(lacking=frozenset({"libGL.so.1", "libxcb-icccm.so.4", "Python.h"}))

        with pytest.raises(SetupError, match="cannot start without"):
            ensure_system_packages(probes, has_environment=True)

        told = capfd.readouterr().err
        assert "libxcb-icccm.so.4 (package libxcb-icccm4)" in told
        assert "install -y --no-install-recommends libgl1 libxcb-icccm4 python3-dev\n" in told

    def test_without_a_compiler_the_set_up_goes_on(
        self, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
    ) -> None:
        monkeypatch.setattr(system_packages, "apt_prefix", lambda _probes, _user: None)

        ensure_system_packages(make_probes(programs=frozenset()), has_environment=True)

        told = capfd.readouterr().err
        assert "the C++ compiler g++ (package g++)" in told
        assert "compiled strategies are off" in told
        assert told.endswith("Going on without.\n")

    @pytest.mark.parametrize(
        ("environ", "stops"),
        [
            ({}, False),
            ({"DISPLAY": ":0"}, True),
            ({"DISPLAY": ":0", "WAYLAND_DISPLAY": "wayland-0"}, False),
        ],
    )
    def test_only_an_x11_display_needs_the_x11_libraries(
        self, environ: dict[str, str], *, stops: bool
    ) -> None:
        probes = make_probes(lacking=frozenset({"libxcb-cursor.so.0"}))
        (missing,) = system_packages.find_missing(probes, has_environment=True)

        assert system_packages.is_required(missing, environ) is stops


@pytest.fixture(scope="module")
def small_venv(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkout's folder with an environment that has pip and nothing else."""
    root = tmp_path_factory.mktemp("checkout").resolve()
    (root / "pyproject.toml").write_text("[project]\n")
    (root / "constraints.txt").write_text("# tested\ntorch==2.13.0\n")
    venv.create(root / ".venv", with_pip=True, symlinks=True)
    return root


class TestEnvironmentState:
    def test_a_finished_environment_is_used(self, small_venv: Path) -> None:
        assert environment_fault(Checkout(small_venv)) is None

    def test_none_yet(self, tmp_path: Path) -> None:
        assert environment_fault(Checkout(tmp_path)) == "there is none yet"

    def test_half_made(self, tmp_path: Path) -> None:
        checkout = Checkout(tmp_path.resolve())
        venv.create(checkout.venv, with_pip=False, symlinks=True)
        assert environment_fault(checkout) == "it was left half made"
        checkout.python.unlink()
        assert environment_fault(checkout) == "its Python does not start"

    def test_copied_along_with_the_checkout(self, small_venv: Path, tmp_path: Path) -> None:
        copy = tmp_path.resolve() / "copy"
        subprocess.run(["cp", "-a", str(small_venv), str(copy)], check=True)

        assert environment_fault(Checkout(copy)) == "it was made for another folder"

    def test_an_interrupted_installation_is_looked_into(self, small_venv: Path) -> None:
        checkout = Checkout(small_venv)
        (site,) = checkout.venv.glob("lib/python*/site-packages")
        victim = site / "pip" / "__main__.py"
        text = victim.read_text()
        checkout.unfinished.touch()
        try:
            assert environment_fault(checkout) is None
            victim.write_text(text[:-10])
            assert damaged_packages(checkout.venv) == ["pip"]
            assert environment_fault(checkout) == (
                "an interrupted installation left pip incomplete"
            )
        finally:
            victim.write_text(text)
            checkout.unfinished.unlink()

    def test_a_package_set_aside_or_without_its_record_is_damaged(self, tmp_path: Path) -> None:
        site = tmp_path / "lib" / "python3.11" / "site-packages"
        (site / "~umpy").mkdir(parents=True)
        (site / "torch-2.13.0.dist-info").mkdir()

        assert damaged_packages(tmp_path) == ["~umpy", "torch"]

    def test_the_stamp_counts_for_what_was_installed(self, small_venv: Path) -> None:
        checkout = Checkout(small_venv)
        fingerprint = checkout.fingerprint(has_gpu=False)
        checkout.program.touch()
        assert not environment_state.is_up_to_date(checkout, fingerprint, extras=[])

        environment_state.write_stamp(checkout, fingerprint, extras=[])
        assert environment_state.is_up_to_date(checkout, fingerprint, extras=[])
        assert not environment_state.is_up_to_date(checkout, fingerprint, extras=["dev"])

        environment_state.write_stamp(checkout, fingerprint, extras=["dev"])
        assert environment_state.is_up_to_date(checkout, fingerprint, extras=[])
        assert not environment_state.is_up_to_date(checkout, fingerprint, extras=["dev", "modules"])

        environment_state.write_stamp(checkout, fingerprint, extras=["dev", "modules"])
        assert environment_state.is_up_to_date(checkout, fingerprint, extras=["dev"])
        checkout.stamp.write_text("{half")
        assert not environment_state.is_up_to_date(checkout, fingerprint, extras=[])

    def test_the_fingerprint_follows_all_that_decides(self, small_venv: Path) -> None:
        checkout = Checkout(small_venv)
        before = checkout.fingerprint(has_gpu=False)
        assert checkout.fingerprint(has_gpu=False) == before
        assert checkout.fingerprint(has_gpu=True) != before
        text = checkout.constraints.read_text()
        checkout.constraints.write_text(text + "numpy==2.4.6\n")
        assert checkout.fingerprint(has_gpu=False) != before
        checkout.constraints.write_text(text)
        assert checkout.fingerprint(has_gpu=False) == before


class TestTorch:
    def test_the_tested_release_is_read(self, small_venv: Path) -> None:
        assert setup_environment.tested_torch(Checkout(small_venv)) == "2.13.0"

    def test_constraints_without_torch_are_an_error(self, tmp_path: Path) -> None:
        (tmp_path / "constraints.txt").write_text("numpy==2.4.6\n# torch==1.0\n")

        with pytest.raises(SetupError, match="names no release of torch"):
            setup_environment.tested_torch(Checkout(tmp_path))

    @pytest.mark.parametrize(
        ("complaint", "missing"),
        [
            (
                "ERROR: Could not find a version that satisfies the requirement torch==2.13.0+cpu "
                "(from versions: 2.12.0, 2.13.0)\nERROR: No matching distribution found for torch",
                True,
            ),
            ("ERROR: ResolutionImpossible: for help visit ...", True),
            (
                "ERROR: Could not find a version that satisfies the requirement torch==2.13.0+cpu "
                "(from versions: none)\nERROR: No matching distribution found for torch",
                False,
            ),
            ("ERROR: Could not install packages due to an OSError: No space left on device", False),
        ],
    )
    def test_a_missing_build_is_told_from_a_failure(self, complaint: str, *, missing: bool) -> None:
        assert is_offer_missing(complaint) is missing

    @pytest.mark.parametrize(
        ("version", "asked"), [("2.13.0+cpu", ["torch===2.13.0"]), ("2.13.0", []), (None, [])]
    )
    def test_a_gpu_gets_the_build_with_cuda(
        self,
        version: str | None,
        asked: list[str],
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        installed: list[str] = []
        monkeypatch.setattr(
            setup_environment, "pip_install", lambda _checkout, what: installed.append(what)
        )
        if version is not None:
            site = tmp_path / ".venv" / "lib" / "python3.11" / "site-packages"
            (site / f"torch-{version}.dist-info").mkdir(parents=True)

        setup_environment.install_cuda_torch(Checkout(tmp_path))

        assert installed == asked


class TestCommand:
    def test_an_old_python_is_told_so(
        self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        monkeypatch.setattr(
            setup_environment,
            "sys",
            SimpleNamespace(version_info=(3, 10, 12), stderr=sys.stderr),
        )

        assert setup_environment.main([]) == 1
        assert "Python 3.11 or newer is needed, and this is 3.10" in capsys.readouterr().err

    def test_an_interruption_exits_130(
        self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        def interrupt(_checkout: Checkout, *, extras: list[str]) -> None:
            raise KeyboardInterrupt

        monkeypatch.setattr(setup_environment, "set_up", interrupt)

        assert setup_environment.main(["--dev"]) == 130
        assert "it goes on" in capsys.readouterr().err

    def test_a_full_or_read_only_disk_is_told_in_a_sentence(
        self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        def fail(_checkout: Checkout, *, extras: list[str]) -> None:
            raise OSError(30, "Read-only file system", "/there/.venv/setup-unfinished")

        monkeypatch.setattr(setup_environment, "set_up", fail)

        assert setup_environment.main([]) == 1
        told = capsys.readouterr().err
        assert told.startswith("Set-up stopped: /there/.venv/setup-unfinished: Read-only file ")

    def test_the_scripts_parse_as_python_3_8(self) -> None:
        import ast

        for name in ("setup_environment", "environment_state", "system_packages"):
            source = Path(setup_environment.__file__).with_name(f"{name}.py").read_text()
            ast.parse(source, feature_version=(3, 8))
