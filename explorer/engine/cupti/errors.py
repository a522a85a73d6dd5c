"""Every way in which the counters can be refused, as one sentence with its remedy."""

from explorer.engine.cupti.environment import counters_admin_only, is_wsl
from explorer.model.errors import ExplorerError

INVALID_PARAMETER = 1
HARDWARE_BUSY = 26
NOT_SUPPORTED = 27
VIRTUALIZED = 33
INSUFFICIENT_PRIVILEGES = 35
VIRTUALIZED_PRIVILEGES = 40
CONFIDENTIAL_COMPUTING = 41
MINING_PROCESSOR = 42
SLI = 44
WSL = 45

_WINDOWS_SIDE = (
    "in Windows open the NVIDIA Control Panel, turn on Desktop > Enable Developer Settings, choose "
    "Developer > Manage GPU Performance Counters > Allow access to all users, then restart WSL"
)
_MODULE_OPTION = (
    "let an administrator put `options nvidia NVreg_RestrictProfilingToAdminUsers=0` into a file "
    "in /etc/modprobe.d and reboot (where the initramfs holds the driver, rebuild it first)"
)
_BUSY = (
    "another program is using the GPU's counters; close Nsight Compute, Nsight Systems or the "
    "other Kernel Explorer, or stop DCGM's profiling (`dcgmi profiling --pause`), and run again"
)
_NOT_ACCEPTED = (
    "CUPTI {release} did not accept the arguments of {call}; use a torch that brings another "
    "CUPTI (12.6 to 13.5 are known), or a newer Kernel Explorer"
)
_UNKNOWN_RELEASE = (
    "CUPTI {release} is newer than what this Kernel Explorer was made for and did not accept "
    "the arguments of {call}; use a newer Kernel Explorer, or a torch that brings CUPTI 12.6 to "
    "13.5"
)
_UNKNOWN_RESULT = (
    "CUPTI {release} refused {call} for a reason this Kernel Explorer does not know; look the "
    "number up in CUPTI's list of results, or use a newer Kernel Explorer"
)

_SENTENCES = {
    INVALID_PARAMETER: _NOT_ACCEPTED,
    2: "CUPTI does not know this device; check CUDA_VISIBLE_DEVICES and the device's number",
    3: "the CUDA context is not valid any more; start the worker again",
    7: "CUPTI does not allow {call} in its present state; start the worker again",
    8: "there was too little host memory for the counters' buffers; measure fewer launches at once",
    9: "the counter hardware reported a fault; reboot the machine, and look for Xid messages in "
    "the kernel's log",
    11: "CUPTI {release} does not implement {call}; use a torch that brings CUPTI 12.6 to 13.5",
    12: "the counters' buffers reached their limit; measure fewer launches at once",
    15: "CUPTI could not reach the NVIDIA driver; check that `nvidia-smi` works, and that the "
    "driver is not older than torch's CUDA",
    17: "this GPU has no counter by the name asked for; use a newer torch, whose CUPTI knows it",
    23: "CUPTI is switched off because another profiler is attached; run without ncu, nsys or "
    "cuda-gdb round this program",
    HARDWARE_BUSY: _BUSY,
    NOT_SUPPORTED: "this GPU or system does not let CUPTI count kernels; counters need a GPU of "
    "the Turing generation (compute capability 7.5) or newer and a driver as new as torch's CUDA",
    VIRTUALIZED: "this is a virtual GPU whose type has no counters; use a whole GPU, or a vGPU "
    "type with profiling",
    INSUFFICIENT_PRIVILEGES: "the driver keeps the GPU's counters for administrators; {remedy}",
    36: "an older profiling interface of CUPTI is in use in this process; unset what loads it "
    "(CUDA_INJECTION64_PATH, NVTX_INJECTION64_PATH) and start again",
    38: "this GPU does not offer the profiling interface that CUPTI {release} was asked for; use a "
    "torch with a newer CUPTI, and for a GPU before Turing rely on the modelled bytes",
    39: "another profiler is attached to this process; run without ncu, nsys or cuda-gdb round it, "
    "and unset CUDA_INJECTION64_PATH",
    VIRTUALIZED_PRIVILEGES: "the hypervisor forbids counters on this virtual GPU; let the host's "
    "administrator set `enable_profiling=1` for the vGPU",
    CONFIDENTIAL_COMPUTING: "the GPU is in confidential-computing mode, which shuts its counters; "
    "use a GPU with that mode off",
    MINING_PROCESSOR: "mining processors (NVIDIA CMP) have no usable counters; use another GPU",
    43: "the GPU is partitioned by MIG, where CUPTI may not count; choose a whole GPU with "
    "CUDA_VISIBLE_DEVICES, or let an administrator turn MIG off",
    SLI: "the GPU is in an SLI group, where CUPTI cannot count; turn SLI off in the driver",
    WSL: "this WSL cannot reach the GPU's counters; update the Windows driver and run "
    "`wsl --update`, then " + _WINDOWS_SIDE,
    46: "CUPTI {release} does not know this GPU's chip; use a torch with a newer CUPTI",
    47: "CUPTI cannot count under the Multi-Process Service; stop MPS "
    "(`echo quit | nvidia-cuda-mps-control`) and run again",
    999: "CUPTI failed inside {call}; check that libnvperf_host.so lies beside libcupti and that "
    "the driver is not older than torch's CUDA",
}


class CounterRefused(ExplorerError):  # noqa: N818 - a refusal is an expected answer, no error
    """The counters cannot be read.

    Attributes:
        sentence: Why, and what to do about it, in one sentence.
        code: CUPTI's result code, None where the refusal is not CUPTI's.
        call: The function that refused, None where none was reached.
    """

    def __init__(self, sentence: str, *, code: int | None = None, call: str | None = None) -> None:
        super().__init__(sentence)
        self.sentence = sentence
        self.code = code
        self.call = call


def refusal(
    code: int,
    call: str,
    release: str,
    *,
    known_release: bool = True,
    wsl: bool | None = None,
    admin_only: bool | None = None,
) -> CounterRefused:
    """The exception for a result code.

    Args:
        code: CUPTI's result, not 0.
        call: The function that gave it.
        release: CUPTI's release as text, e.g. ``13.0``.
        known_release: Whether the argument blocks were made for that release.
        wsl: Whether this is WSL; looked up when None.
        admin_only: The driver's ``RmProfilingAdminOnly``; looked up when None.
    """
    wsl = is_wsl() if wsl is None else wsl
    admin_only = counters_admin_only() if admin_only is None else admin_only
    text = _SENTENCES.get(code, _UNKNOWN_RESULT)
    if code == INVALID_PARAMETER and not known_release:
        text = _UNKNOWN_RELEASE
    sentence = text.format(
        code=code, call=call, release=release, remedy=_privilege_remedy(wsl, admin_only)
    )
    suffix = f" (CUPTI result {code})"
    return CounterRefused(f"DRAM bytes are not counted: {sentence}{suffix}.", code=code, call=call)


def _privilege_remedy(wsl: bool, admin_only: bool | None) -> str:
    if wsl:
        return _WINDOWS_SIDE
    if admin_only is False:
        return (
            "RmProfilingAdminOnly is 0 already, so it is the container or the virtual machine "
            "that withholds them: let whoever runs it pass the right on"
        )
    return _MODULE_OPTION
