import { spawnSync } from "node:child_process";
import { closeSync, openSync } from "node:fs";
import { devNull } from "node:os";
import { expect, test } from "vitest";
import type { ProcessLimits } from "../../ports/spawner.ts";
import type { LaunchPlan } from "../containment/containment.ts";
import { gateArguments, leaderScript } from "./gate.ts";
import { covered, inheritedDescriptors } from "./inherited-descriptors.ts";

const planned = (limits: ProcessLimits, ...argv: readonly string[]): LaunchPlan => ({
  ...{ id: "proc_gate.1", cookie: "proc_gate.1:x", env: {}, cwd: "/", workspace: "/", profile: "none" },
  argv: ["/bin/echo", ...argv],
  limits: { processesMax: 100, ...limits },
  terminal: false,
});

/** The limits that a gate sets, line by line. */
const limitsOf = (limits: ProcessLimits): readonly string[] =>
  (gateArguments(planned(limits))[2] ?? "").split("\n").filter((line) => line.startsWith("ulimit"));

test("a command dumps no core, and has no other limits by default", () => {
  expect(limitsOf({})).toEqual(["ulimit -c 0 2>/dev/null"]);
});

test("limits are set in the units of a shell, and rounded up", () => {
  expect(limitsOf({ memoryBytesMax: 1025, fileBytesMax: 513, cpuSecondsMax: 1.5 })).toEqual([
    ...["ulimit -c 0", "ulimit -d 2", "ulimit -f 2", "ulimit -t 2"].map((line) => `${line} 2>/dev/null`),
  ]);
  expect(limitsOf({ memoryBytesMax: 1024 })).toContain("ulimit -d 1 2>/dev/null");
  expect(limitsOf({ fileBytesMax: 512 })).toContain("ulimit -f 1 2>/dev/null");
});

/** Runs a gate with this text on its control pipe. `output`: its status and its command's output together. */
function gate(word: string, ...argv: readonly string[]) {
  const [file = "", ...args] = gateArguments(planned({}, ...argv));
  const script = '"$0" "$@" 3<&0 4>&1 5>/dev/null </dev/null';
  const cover = openSync(devNull, "r+");
  const stdio = covered(["pipe", "pipe", "inherit"] as const, inheritedDescriptors(), cover);
  const child = spawnSync("/bin/sh", ["-c", script, file, ...args], { input: word, encoding: "utf8", stdio });
  closeSync(cover);
  return { output: child.stdout, code: child.status };
}

test("a gate reports ready, and becomes the command on GO, with each argument unchanged", () => {
  expect(gate("go\n", "a  b", "$HOME")).toEqual({ output: "ready\na  b $HOME\n", code: 0 });
});

test("a gate whose server dies, or sends another line, does not start the command", () => {
  expect(gate("", "begun")).toEqual({ output: "ready\n", code: 125 });
  expect(gate("stop\n", "begun")).toEqual({ output: "ready\n", code: 125 });
});

test("a leader runs the preceding commands, and only then starts its command", () => {
  const args = ["-c", leaderScript("echo before"), "belay", "/bin/echo", "command"];
  const started = ["-c", 'exec "$0" "$@" 3</dev/null 4>&1', "/bin/sh", ...args];
  expect(spawnSync("/bin/sh", started, { encoding: "utf8" }).stdout).toBe("before\ncommand\nexit 0\n");
  expect(leaderScript().split("\n").length).toBe(leaderScript("echo before").split("\n").length - 1);
});

test("G38: a gate with an unexpected file descriptor does not start the command, and reports its number", () => {
  const [file = "", ...args] = gateArguments(planned({}, "begun"));
  const script = `"$0" "$@" 3<&0 4>&1 5>/dev/null 7</ </dev/null`;
  const cover = openSync(devNull, "r+");
  const stdio = covered(["pipe", "pipe", "pipe"] as const, inheritedDescriptors(), cover);
  const child = spawnSync("/bin/sh", ["-c", script, file, ...args], { input: "go\n", encoding: "utf8", stdio });
  closeSync(cover);
  expect(child).toMatchObject({ status: 125, stdout: "" });
  expect(child.stderr).toBe("file descriptor 7 of the server would be inherited\n");
});
