// The two small shell programs between a mechanism and a command: the leader and the gate.
//
// The leader (pid 1 of a namespace, or the leader of a group) starts the gate, waits for it, reports its exit status,
// and stays until the server releases it: so the group's number stays ours, and in a namespace the kernel keeps the
// tree. The gate reports that it is ready and waits for GO. Then it becomes the command by exec: same pid, nothing
// between. If the server dies before it has sent GO, the command never begins.
//
// Both get these file descriptors, and the command gets neither of the first two:
//   3 control, from the server   4 status, to the server   5 liveness, held open by every process that inherits it
import type { ProcessLimits } from "../../ports/spawner.ts";
import type { LaunchPlan } from "../containment/containment.ts";

export const CONTROL_FD = 3;
export const STATUS_FD = 4;
export const LIVENESS_FD = 5;
/** Where bubblewrap reads its filter of system calls; it closes it again. */
export const FILTER_FD = 6;
/**
 * The liveness pipe in the command: away from 3, which some programs expect to be free. The highest number that every
 * shell supports.
 */
export const LIVENESS_FD_OF_COMMAND = 9;

/** What the gate writes when it is ready, and what it waits for. */
export const READY = "ready";
export const GO = "go\n";

export const SHELL = "/bin/sh";

/** Exit code of a gate that did not receive GO. */
const NOT_LET_THROUGH = 125;

/**
 * The leader's own stderr is the status pipe: some shells comment on how a command died, which is not its output; and
 * if a shell cannot fork, that comment is why the command did not start. The polite signal reaches the leader as part
 * of its group; it traps and ignores it, and the command starts with default handlers. It must wait in the foreground:
 * a background command of a shell could not be interrupted.
 */
export function leaderScript(before = ""): string {
  return [
    "trap : TERM INT HUP QUIT",
    `exec 8>&2 2>&${STATUS_FD}`,
    ...(before === "" ? [] : [before]),
    // In a subshell, which becomes the gate: some shells redirect themselves while they wait.
    '(exec "$@" 2>&8 8>&-)',
    "code=$?",
    "exec 0<&- 1>&- 8>&- 5>&-",
    `echo "exit $code" >&${STATUS_FD}`,
    // Ends with a line from the server, or with the server.
    `read -r _ <&${CONTROL_FD}`,
  ].join("\n");
}

/** The arguments that start the gate, and through it the command. */
export function gateArguments(plan: LaunchPlan): readonly string[] {
  const script = [
    `exec ${LIVENESS_FD_OF_COMMAND}>&${LIVENESS_FD} ${LIVENESS_FD}>&-`,
    descriptorCheck(plan.tether),
    `echo ${READY} >&${STATUS_FD}`,
    `read -r word <&${CONTROL_FD} || exit ${NOT_LET_THROUGH}`,
    `[ "$word" = ${GO.trim()} ] || exit ${NOT_LET_THROUGH}`,
    `exec ${CONTROL_FD}<&- ${STATUS_FD}>&-`,
    ...limitLines(plan.limits),
    'exec "$@"',
  ].join("\n");
  return [SHELL, "-c", script, "belay", ...plan.argv];
}

/**
 * Ends the gate if it has an unexpected file descriptor: it allows only our pipes, and /dev/null in place of others.
 */
function descriptorCheck(tether = LIVENESS_FD_OF_COMMAND): string {
  return [
    "for fd in /proc/self/fd/*; do",
    `fd=\${fd##*/}`,
    `case $fd in [01234] | ${tether} | ${LIVENESS_FD_OF_COMMAND} | "*") continue ;; esac`,
    '[ ! -e "/proc/self/fd/$fd" ] || [ "/proc/self/fd/$fd" -ef /dev/null ] || {',
    'echo "file descriptor $fd of the server would be inherited" >&2',
    `exit ${NOT_LET_THROUGH}`,
    "}",
    "done",
  ].join("\n");
}

/**
 * The shell counts files in blocks of 512 bytes and memory in KiB. No core dumps: they contain the memory of a process.
 */
function limitLines(limits: ProcessLimits): readonly string[] {
  const { memoryBytesMax, fileBytesMax, cpuSecondsMax } = limits;
  const lines = ["ulimit -c 0"];
  // Data segment instead of address space: some runtimes reserve far more than they ever use.
  if (memoryBytesMax !== undefined) lines.push(`ulimit -d ${Math.ceil(memoryBytesMax / 1024)}`);
  if (fileBytesMax !== undefined) lines.push(`ulimit -f ${Math.ceil(fileBytesMax / 512)}`);
  if (cpuSecondsMax !== undefined) lines.push(`ulimit -t ${Math.ceil(cpuSecondsMax)}`);
  // A limit that cannot be set means that a lower one is in force already.
  return lines.map((line) => `${line} 2>/dev/null`);
}
