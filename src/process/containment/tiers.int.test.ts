// The choice of a mechanism, and its refusal, from given test results: no process is started here.
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { ControlError } from "../../core/errors.ts";
import type { Mechanism } from "../../ports/spawner.ts";
import { manualClock } from "../../testing/manual-clock.ts";
import { PROC_PROCESS_TABLE } from "../tree/proc-process-table.ts";
import { unenforced } from "./attacks.ts";
import { type Diagnosis, diagnose } from "./doctor.ts";
import type { Machine } from "./machine.ts";
import { MECHANISMS, TIER_OF } from "./mechanisms.ts";
import { notesOnPlatform } from "./platform.ts";
import type { TestResult } from "./self-test.ts";
import { type ChooseOptions, choose } from "./tiers.ts";

let dir: string;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), "belay-tiers-"));
});
afterEach(() => rmSync(dir, { recursive: true, force: true }));

const PROGRAMS = ["bwrap", "setpriv", "unshare", "setsid", "mount", "perl", "script"];

/** A machine that has everything. */
const rich = (): Machine => ({
  ...{ platform: "linux", kernel: "6.14.0", root: false, mayUnshare: true, capsPerNamespace: true, cgroup: dir },
  programs: Object.fromEntries(PROGRAMS.map((name) => [name, `/nowhere/${name}`])),
});

/** With test results: only these have passed. */
function on(machine: Machine, ...passed: readonly Mechanism[]): ChooseOptions {
  const test = async (one: Mechanism): Promise<TestResult> =>
    passed.includes(one) ? { kind: "passed" } : { kind: "failed", why: `no ${one}` };
  return { machine, stateDir: dir, workspace: dir, clock: manualClock(), processTable: PROC_PROCESS_TABLE, test };
}

describe("the mechanism", () => {
  test.each([
    ["bubblewrap", [...MECHANISMS]],
    ["unshare", ["group", "unshare", "anchor"]],
    ["cgroup", ["anchor", "cgroup"]],
    ["anchor", ["anchor", "group"]],
    ["group", ["group"]],
  ] as const)("is the best that has passed: %s", async (best, passed) => {
    const { containment, passedOver } = await choose(on(rich(), ...passed));
    expect(containment.mechanism).toBe(best);
    expect(Object.keys(passedOver)).toEqual(MECHANISMS.slice(0, MECHANISMS.indexOf(best)));
    containment.close?.();
  });

  test("is the requested one, even if a better one is available", async () => {
    const { containment, passedOver } = await choose({ ...on(rich(), ...MECHANISMS), mechanism: "anchor" });
    expect([containment.mechanism, passedOver]).toEqual(["anchor", {}]);
  });

  test("that has passed, but lost its programs since, is skipped", async () => {
    const { containment } = await choose(on({ ...rich(), cgroup: undefined }, "cgroup", "group"));
    expect(containment.mechanism).toBe("group");
    containment.close?.();
  });

  test("a test that lacked resources refuses the start instead of choosing a lower tier", async () => {
    const test = async (one: Mechanism): Promise<TestResult> =>
      one === "bubblewrap" ? { kind: "failed", why: "spawn EMFILE", shortage: true } : { kind: "passed" };
    await expect(choose({ ...on(rich()), test })).rejects.toMatchObject({
      code: "uncontained",
      message: "The containment by bubblewrap could not be tested: spawn EMFILE.",
      hint: expect.stringContaining("raise the limits"),
    });
  });

  test("a result file in the state directory does not lower the tier of the next start", async () => {
    const results = { bubblewrap: { kind: "failed", why: "x" }, group: { kind: "passed" } };
    writeFileSync(join(dir, "containment.json"), JSON.stringify({ key: "any", results }));
    const { containment } = await choose(on(rich(), "bubblewrap", "group"));
    expect(containment.tier).toBe("namespace");
  });

  test("may be of the required tier or a stronger one", async () => {
    for (const requireTier of ["namespace", "cgroup", "anchor", "group"] as const) {
      const { containment } = await choose({ ...on(rich(), "unshare"), requireTier });
      expect(containment.mechanism).toBe("unshare");
    }
  });
});

describe("a refusal", () => {
  const install = { bubblewrap: "Install bubblewrap: apt-get install bubblewrap." };

  test("has the required tier, the available one, the reasons and the fixes", async () => {
    const { bwrap: _, ...programs } = rich().programs;
    const choosing = choose({ ...on({ ...rich(), programs }, "anchor"), requireTier: "namespace" });
    await expect(choosing).rejects.toMatchObject({
      code: "uncontained",
      message:
        'Processes of tier "namespace" cannot be started: the best this machine has is "anchor". ' +
        "bubblewrap: no bubblewrap; unshare: no unshare; cgroup: no cgroup",
      hint: expect.stringContaining(install.bubblewrap),
    });
  });

  test("recommends no mechanism that would be too weak", async () => {
    const choosing = choose({
      ...on({ ...rich(), programs: {}, cgroup: undefined }, "group"),
      requireTier: "namespace",
    });
    await expect(choosing).rejects.toMatchObject({
      hint: `${install.bubblewrap} Or: Install util-linux: apt-get install util-linux.`,
    });
  });

  test("names mechanisms that have passed, but lost their programs since, without a reason", async () => {
    const choosing = choose({ ...on({ ...rich(), cgroup: undefined }, "cgroup"), mechanism: "cgroup" });
    await expect(choosing).rejects.toMatchObject({
      message: "Processes cannot be started: no mechanism works here. cgroup",
    });
  });

  test("ends after its first sentence if no mechanism was tried before", async () => {
    const choosing = choose({ ...on(rich(), "anchor"), mechanism: "anchor", requireTier: "namespace" });
    await expect(choosing).rejects.toMatchObject({
      message: 'Processes of tier "namespace" cannot be started: the best this machine has is "anchor".',
    });
  });

  test("for a requested mechanism is about that one alone", async () => {
    const { bwrap: _, ...programs } = rich().programs;
    const choosing = choose({ ...on({ ...rich(), programs, cgroup: undefined }), mechanism: "bubblewrap" });
    await expect(choosing).rejects.toMatchObject({
      message: "Processes cannot be started: no mechanism works here. bubblewrap: no bubblewrap",
      hint: install.bubblewrap,
    });
  });

  test("where no mechanism works has every fix, each once", async () => {
    const choosing = choose(on({ ...rich(), programs: {}, cgroup: undefined }));
    const error = await choosing.catch((thrown: unknown) => thrown);
    const { hint } = error as { readonly hint: string };
    expect(hint.split(" Or: ").map((one) => one.slice(0, 20))).toEqual([
      ...["Install bubblewrap: ", "Install util-linux: ", "Start the server in ", "Install perl: apt-ge"],
    ]);
  });

  test("without a known fix has the default hint", async () => {
    const { hint } = new ControlError("uncontained", "any");
    await expect(choose({ ...on(rich()), mechanism: "group" })).rejects.toMatchObject({ hint });
  });
});

describe("the doctor", () => {
  const diagnosed = async (machine: Machine, ...passed: readonly Mechanism[]): Promise<Diagnosis> =>
    diagnose(on(machine, ...passed));
  const limitsOf = ({ mechanisms }: Diagnosis, mechanism: Mechanism): string =>
    mechanisms.find((one) => one.mechanism === mechanism)?.limits.join(" ") ?? "";

  test("reports the best that has passed, what is available, and fixes for the others", async () => {
    const { mechanisms, best, notes, platform, kernel } = await diagnosed(
      { ...rich(), cgroup: undefined },
      "unshare",
      "group",
    );
    expect([best, platform, kernel, notes]).toEqual(["unshare", "linux", "6.14.0", []]);
    expect(mechanisms.map(({ mechanism, tier, available }) => [mechanism, tier, available])).toEqual([
      ["bubblewrap", "namespace", true],
      ["unshare", "namespace", true],
      ["cgroup", "cgroup", false],
      ["anchor", "anchor", true],
      ["group", "group", true],
    ]);
    expect(mechanisms.map(({ profiles }) => profiles.join(" "))).toEqual([
      ...["none contain workspace", "none contain", "", "none", "none"],
    ]);
    expect(mechanisms.find(({ mechanism }) => mechanism === "cgroup")?.fix).toContain("Delegate=yes");
    expect(mechanisms.find(({ mechanism }) => mechanism === "unshare")?.fix).toBeUndefined();
  });

  test("has no best where none has passed", async () => {
    expect((await diagnosed(rich())).best).toBeUndefined();
  });

  test("reports the cap on processes by kernel, privileges and programs", async () => {
    const { setpriv: _, ...programs } = rich().programs;
    const rows: readonly [Partial<Machine>, string][] = [
      [{}, ""],
      [{ capsPerNamespace: false }, "A cap requires Linux 6.14."],
      [{ root: true }, "As root, the cap on processes is a guard against accidents only"],
      [{ programs }, "A cap requires setpriv: apt-get install util-linux."],
    ];
    for (const [more, words] of rows) {
      const limits = limitsOf(await diagnosed({ ...rich(), ...more }), "bubblewrap");
      if (words === "") expect(limits).toBe("sudo and other set-user-ID programs get no rights inside.");
      else expect(limits).toContain(words);
    }
    expect(limitsOf(await diagnosed(rich()), "unshare")).toBe('It has no profile "workspace".');
  });

  test("reports that a control group has no cap, unless the kernel counts processes there", async () => {
    const NO_CAP = "The number of processes of a tree is not capped.";
    expect(limitsOf(await diagnosed(rich()), "cgroup")).toContain(NO_CAP);
    expect(limitsOf(await diagnosed({ ...rich(), cgroup: undefined }), "cgroup")).toContain(NO_CAP);
    // The request overwrites the beginning of the file, where a real kernel would answer with its own text.
    writeFileSync(join(dir, "cgroup.subtree_control"), "_____ cpu pids");
    const { mechanisms } = await diagnosed(rich());
    expect(mechanisms.find(({ mechanism }) => mechanism === "cgroup")?.limits.slice(0, 2)).toEqual([
      "Processes see each other, and the server: keep secrets out of the server's environment.",
      "If the server is killed, its trees end a moment later, by a watchdog, or at the next start.",
    ]);
  });

  test("G38: reports what a command can do to Belay, by mechanism, from the table of attacks", async () => {
    const diagnosis = await diagnosed(rich());
    for (const mechanism of MECHANISMS) {
      const limits = limitsOf(diagnosis, mechanism);
      for (const words of unenforced(mechanism, true)) expect(limits).toContain(words);
      expect(limits.includes("run Belay as a separate user")).toBe(TIER_OF[mechanism] !== "namespace");
    }
    const { mount: _, ...programs } = rich().programs;
    expect(limitsOf(await diagnosed({ ...rich(), programs }), "unshare")).toContain("A command can read or change");
    const { perl: __, ...others } = rich().programs;
    expect(limitsOf(await diagnosed({ ...rich(), programs: others }), "cgroup")).toContain(
      "can leave its own and escape",
    );
  });

  test("reports what escapes the lower tiers", async () => {
    const diagnosis = await diagnosed(rich());
    expect(limitsOf(diagnosis, "anchor")).toContain("kills its anchor on purpose");
    expect(limitsOf(diagnosis, "group")).toContain("closes its inherited files escapes");
    expect(limitsOf(diagnosis, "group")).not.toContain("if ps does not show its environment");
  });

  test("reports that there are no terminals without a program that makes them", async () => {
    const { script: _, ...programs } = rich().programs;
    const { notes } = await diagnosed({ ...rich(), programs });
    expect(notes).toEqual(["No terminals: `script` is missing (apt-get install bsdutils)."]);
    // macOS has none in any case, and has its own note about it.
    const mac = await diagnosed({ ...rich(), programs, platform: "darwin" });
    expect(mac.notes).toEqual(notesOnPlatform("darwin"));
  });

  test("reports that a server with pid 1 needs an init that reaps processes", async () => {
    const pid = Object.getOwnPropertyDescriptor(process, "pid") ?? {};
    onTestFinished(() => {
      Object.defineProperty(process, "pid", pid);
    });
    Object.defineProperty(process, "pid", { ...pid, value: 1 });
    expect((await diagnosed(rich(), "group")).notes).toEqual([
      "The server is the first process here and does not reap others: use --init, or tini.",
    ]);
  });
});
