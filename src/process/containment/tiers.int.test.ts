// Which mechanism is chosen, and why none is, by what was found out before: nothing is held here.
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
import { type Choosing, choose } from "./tiers.ts";

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

/** On which all but these have failed. */
function on(machine: Machine, ...passed: readonly Mechanism[]): Choosing {
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

  test("is the one that is asked for, also if a better one is there", async () => {
    const { containment, passedOver } = await choose({ ...on(rich(), ...MECHANISMS), mechanism: "anchor" });
    expect([containment.mechanism, passedOver]).toEqual(["anchor", {}]);
  });

  test("that has passed, and whose programs are gone since, is passed over", async () => {
    const { containment } = await choose(on({ ...rich(), cgroup: undefined }, "cgroup", "group"));
    expect(containment.mechanism).toBe("group");
    containment.close?.();
  });

  test("a test that had no room refuses the start instead of choosing a lower tier", async () => {
    const test = async (one: Mechanism): Promise<TestResult> =>
      one === "bubblewrap" ? { kind: "failed", why: "spawn EMFILE", shortage: true } : { kind: "passed" };
    await expect(choose({ ...on(rich()), test })).rejects.toMatchObject({
      code: "uncontained",
      message: "Whether bubblewrap holds processes here could not be tested: spawn EMFILE.",
      hint: expect.stringContaining("raise the limits"),
    });
  });

  test("a result file in the state directory does not lower the tier of the next start", async () => {
    const results = { bubblewrap: { kind: "failed", why: "x" }, group: { kind: "passed" } };
    writeFileSync(join(dir, "containment.json"), JSON.stringify({ key: "any", results }));
    const { containment } = await choose(on(rich(), "bubblewrap", "group"));
    expect(containment.tier).toBe("namespace");
  });

  test("may be as sure as is required, or surer", async () => {
    for (const requireTier of ["namespace", "cgroup", "anchor", "group"] as const) {
      const { containment } = await choose({ ...on(rich(), "unshare"), requireTier });
      expect(containment.mechanism).toBe("unshare");
    }
  });
});

describe("a refusal", () => {
  const install = { bubblewrap: "Install bubblewrap: apt-get install bubblewrap." };

  test("says what is required, what there is, why, and what would do", async () => {
    const { bwrap: _, ...programs } = rich().programs;
    const asked = choose({ ...on({ ...rich(), programs }, "anchor"), requireTier: "namespace" });
    await expect(asked).rejects.toMatchObject({
      code: "uncontained",
      message:
        'Processes of tier "namespace" cannot be started: the best this machine has is "anchor". ' +
        "bubblewrap: no bubblewrap; unshare: no unshare; cgroup: no cgroup",
      hint: expect.stringContaining(install.bubblewrap),
    });
  });

  test("speaks of no mechanism that would not be sure enough", async () => {
    const asked = choose({ ...on({ ...rich(), programs: {}, cgroup: undefined }, "group"), requireTier: "namespace" });
    await expect(asked).rejects.toMatchObject({
      hint: `${install.bubblewrap} Or: Install util-linux: apt-get install util-linux.`,
    });
  });

  test("names those that have passed, and whose programs are gone since, without a reason", async () => {
    const asked = choose({ ...on({ ...rich(), cgroup: undefined }, "cgroup"), mechanism: "cgroup" });
    await expect(asked).rejects.toMatchObject({
      message: "Processes cannot be started: nothing here holds them. cgroup",
    });
  });

  test("has nothing behind its last word where nothing was passed over", async () => {
    const asked = choose({ ...on(rich(), "anchor"), mechanism: "anchor", requireTier: "namespace" });
    await expect(asked).rejects.toMatchObject({
      message: 'Processes of tier "namespace" cannot be started: the best this machine has is "anchor".',
    });
  });

  test("for a mechanism that was asked for speaks of that one alone", async () => {
    const { bwrap: _, ...programs } = rich().programs;
    const asked = choose({ ...on({ ...rich(), programs, cgroup: undefined }), mechanism: "bubblewrap" });
    await expect(asked).rejects.toMatchObject({
      message: "Processes cannot be started: nothing here holds them. bubblewrap: no bubblewrap",
      hint: install.bubblewrap,
    });
  });

  test("where nothing holds has every way there is, each once", async () => {
    const asked = choose(on({ ...rich(), programs: {}, cgroup: undefined }));
    const error = await asked.catch((thrown: unknown) => thrown);
    const { hint } = error as { readonly hint: string };
    expect(hint.split(" Or: ").map((one) => one.slice(0, 20))).toEqual([
      ...["Install bubblewrap: ", "Install util-linux: ", "Start the server in ", "Install perl: apt-ge"],
    ]);
  });

  test("of which nobody knows what to do has no hint of its own", async () => {
    const { hint } = new ControlError("uncontained", "any");
    await expect(choose({ ...on(rich()), mechanism: "group" })).rejects.toMatchObject({ hint });
  });
});

describe("the doctor", () => {
  const told = async (machine: Machine, ...passed: readonly Mechanism[]): Promise<Diagnosis> =>
    diagnose(on(machine, ...passed));
  const limitsOf = ({ mechanisms }: Diagnosis, mechanism: Mechanism): string =>
    mechanisms.find((one) => one.mechanism === mechanism)?.limits.join(" ") ?? "";

  test("names the best that has passed, what each is made of, and how to mend the others", async () => {
    const { mechanisms, best, notes, platform, kernel } = await told(
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

  test("has no best where nothing has passed", async () => {
    expect((await told(rich())).best).toBeUndefined();
  });

  test("tells of the cap on processes by kernel, rights and programs", async () => {
    const { setpriv: _, ...programs } = rich().programs;
    const rows: readonly [Partial<Machine>, string][] = [
      [{}, ""],
      [{ capsPerNamespace: false }, "That takes Linux 6.14."],
      [{ root: true }, "As root, the cap on processes is a guard against accidents only"],
      [{ programs }, "That takes setpriv: apt-get install util-linux."],
    ];
    for (const [more, words] of rows) {
      const limits = limitsOf(await told({ ...rich(), ...more }), "bubblewrap");
      if (words === "") expect(limits).toBe("sudo and other set-user-ID programs get no rights inside.");
      else expect(limits).toContain(words);
    }
    expect(limitsOf(await told(rich()), "unshare")).toBe('It has no profile "workspace".');
  });

  test("says of a control group that it has no cap, unless the kernel counts there", async () => {
    const NO_CAP = "The number of processes of a tree is not capped.";
    expect(limitsOf(await told(rich()), "cgroup")).toContain(NO_CAP);
    expect(limitsOf(await told({ ...rich(), cgroup: undefined }), "cgroup")).toContain(NO_CAP);
    // What we ask for is written there, over what the kernel has said; this is no kernel, which would say it again.
    writeFileSync(join(dir, "cgroup.subtree_control"), "_____ cpu pids");
    const { mechanisms } = await told(rich());
    expect(mechanisms.find(({ mechanism }) => mechanism === "cgroup")?.limits.slice(0, 2)).toEqual([
      "Processes see each other, and the server: keep secrets out of the server's environment.",
      "If the server is killed, its trees end a moment later, by a watchdog, or at the next start.",
    ]);
  });

  test("G38: says what a command can do to Belay, by mechanism, as the table of attacks has it", async () => {
    const diagnosis = await told(rich());
    for (const mechanism of MECHANISMS) {
      const limits = limitsOf(diagnosis, mechanism);
      for (const words of unenforced(mechanism, true)) expect(limits).toContain(words);
      expect(limits.includes("run Belay as a separate user")).toBe(TIER_OF[mechanism] !== "namespace");
    }
    const { mount: _, ...programs } = rich().programs;
    expect(limitsOf(await told({ ...rich(), programs }), "unshare")).toContain("A command can read or change");
    const { perl: __, ...others } = rich().programs;
    expect(limitsOf(await told({ ...rich(), programs: others }), "cgroup")).toContain("can leave its own and escape");
  });

  test("says who escapes the lower tiers", async () => {
    const diagnosis = await told(rich());
    expect(limitsOf(diagnosis, "anchor")).toContain("kills its anchor on purpose");
    expect(limitsOf(diagnosis, "group")).toContain("closes the files it has inherited, escapes");
    expect(limitsOf(diagnosis, "group")).not.toContain("whose environment ps does not show");
  });

  test("says that there are no terminals where nothing makes them", async () => {
    const { script: _, ...programs } = rich().programs;
    const { notes } = await told({ ...rich(), programs });
    expect(notes).toEqual(["No terminals: `script` is missing (apt-get install bsdutils)."]);
    // A Mac has none in any case, and says so by itself.
    const mac = await told({ ...rich(), programs, platform: "darwin" });
    expect(mac.notes).toEqual(notesOnPlatform("darwin"));
  });

  test("says of a server that is the first process of its container that somebody must reap", async () => {
    const pid = Object.getOwnPropertyDescriptor(process, "pid") ?? {};
    onTestFinished(() => {
      Object.defineProperty(process, "pid", pid);
    });
    Object.defineProperty(process, "pid", { ...pid, value: 1 });
    expect((await told(rich(), "group")).notes).toEqual([
      "The server is the first process here and does not reap others: use --init, or tini.",
    ]);
  });
});
