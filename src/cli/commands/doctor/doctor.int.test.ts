import { spawn } from "node:child_process";
import { once } from "node:events";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readlinkSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { stripVTControlCharacters } from "node:util";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import type { Mechanism } from "../../../ports/spawner.ts";
import type { Diagnosis, Finding } from "../../../process/containment/doctor.ts";
import { MECHANISMS, TIER_OF } from "../../../process/containment/mechanisms.ts";
import { EXIT_CODE, EXIT_SIGNAL } from "../../shared/exit-code.ts";
import { printDiagnosis, report, tierOf } from "./doctor.ts";

/** A machine on which these mechanisms work. Bubblewrap is otherwise not installed, and the others fail their test. */
function machineWith(...working: readonly Mechanism[]): Diagnosis {
  const mechanisms = MECHANISMS.map((mechanism): Finding => {
    const works = working.includes(mechanism);
    return {
      ...{ mechanism, tier: TIER_OF[mechanism], available: works || mechanism !== "bubblewrap" },
      test: works ? { kind: "passed" } : { kind: "failed", why: `${mechanism} said:\nno \u001b[31mrights` },
      profiles: works ? ["none", "contain"] : [],
      limits: [`what ${mechanism} cannot do`],
      fix: works ? undefined : `install ${mechanism}`,
    };
  });
  const best = mechanisms.find(({ test }) => test.kind === "passed")?.mechanism;
  return { platform: "linux", kernel: "6.1.0", best, mechanisms, notes: ["no terminals"] };
}

const ALL = machineWith(...MECHANISMS);
const NONE = machineWith();

function captured(act: () => number): { readonly out: string; readonly code: number } {
  const write = vi.spyOn(process.stdout, "write").mockReturnValue(true);
  try {
    const code = act();
    return { code, out: write.mock.calls.map(([text]) => String(text)).join("") };
  } finally {
    write.mockRestore();
  }
}

const plain = { json: false, terminal: false } as const;

describe("the report", () => {
  test("in a file or a pipe, each line is complete in itself, and is plain text", () => {
    expect(report(machineWith("unshare", "group"), false)).toEqual([
      "linux, kernel 6.1.0",
      "bubblewrap: tier namespace, not there",
      "bubblewrap: fix: install bubblewrap",
      "unshare: tier namespace, works, profiles none contain",
      "unshare: limit: what unshare cannot do",
      "cgroup: tier cgroup, does not work",
      "cgroup: why: cgroup said: no rights",
      "cgroup: fix: install cgroup",
      "anchor: tier anchor, does not work",
      "anchor: why: anchor said: no rights",
      "anchor: fix: install anchor",
      "group: tier group, works, profiles none contain",
      "group: limit: what group cannot do",
      "note: no terminals",
      'Processes are held by unshare: tier "namespace". Whatever a command starts ends with it, and with the server.',
    ]);
  });

  test("at a terminal it is a table, with a mark at the mechanism in use", () => {
    const lines = report(machineWith("anchor", "group"), true).map(stripVTControlCharacters);
    const row = (first: string): string => lines.find((line) => line.slice(2).startsWith(`${first} `)) ?? "";
    expect(row("mechanism")).toMatch(/mechanism\s+tier\s+here\s+profiles/);
    expect(row("anchor").startsWith("*")).toBe(true);
    expect(row("group").startsWith(" ")).toBe(true);
    expect(row("anchor").indexOf("works")).toBe(row("group").indexOf("works"));
    expect(lines.some((line) => line.includes("fix") && line.includes("install bubblewrap"))).toBe(true);
    expect(lines.join("\n")).not.toContain("said:\n");
  });

  test("names the leak of the lowest tier, and the consequence of having no tier", () => {
    expect(report(machineWith("group"), false).at(-1)).toContain("unless it sets out to escape: then it does");
    expect(report(NONE, false).at(-1)).toBe("Nothing here holds processes, so none are started.");
  });

  test("--json prints the whole diagnosis on one line", () => {
    const { out, code } = captured(() => printDiagnosis(ALL, { json: true, terminal: true, require: undefined }));
    expect(out.endsWith("}\n")).toBe(true);
    expect(out.trimEnd().split("\n").length).toBe(1);
    expect(JSON.parse(out)).toEqual({ doctor: JSON.parse(JSON.stringify(ALL)), tier: "namespace" });
    expect(code).toBe(0);
    const none = captured(() => printDiagnosis(NONE, { json: true, terminal: false, require: undefined }));
    expect(JSON.parse(none.out)).toMatchObject({ tier: null });
  });
});

describe("the exit code", () => {
  test.each([
    ["bubblewrap", 0],
    ["cgroup", 0],
    ["anchor", 0],
    ["group", 1],
  ] as const)("%s alone: %d", (mechanism, expected) => {
    expect(captured(() => printDiagnosis(machineWith(mechanism), { ...plain, require: undefined })).code).toBe(
      expected,
    );
  });

  test("is that of `uncontained` if no mechanism works", () => {
    expect(captured(() => printDiagnosis(NONE, { ...plain, require: undefined })).code).toBe(EXIT_CODE.uncontained);
  });

  test("is 0 if the required tier is available, even the lowest", () => {
    expect(captured(() => printDiagnosis(machineWith("group"), { ...plain, require: "group" })).code).toBe(0);
    expect(captured(() => printDiagnosis(ALL, { ...plain, require: "anchor" })).code).toBe(0);
  });

  test("is `uncontained` if the required tier is missing; the hint has only the fixes that provide it", () => {
    const require = (diagnosis: Diagnosis) => () =>
      captured(() => printDiagnosis(diagnosis, { ...plain, require: "cgroup" }));
    expect(require(machineWith("anchor"))).toThrow(
      expect.objectContaining({
        code: "uncontained",
        message: 'Tier "cgroup" is required, and the best this machine has is "anchor".',
        hint: "install bubblewrap Or: install unshare Or: install cgroup",
      }),
    );
    expect(require(NONE)).toThrow("nothing here holds processes");
  });

  test("an unknown tier is refused with a list of the known ones", () => {
    expect(tierOf("anchor")).toBe("anchor");
    expect(() => tierOf("jail")).toThrow(
      expect.objectContaining({ code: "invalid", hint: "They are, best first: namespace, cgroup, anchor, group." }),
    );
  });
});

/** The command line as a user runs it. */
function belay(...words: readonly string[]): Promise<{ readonly code: number | null; readonly out: string }> {
  const child = spawn(process.execPath, [join(import.meta.dirname, "../../main.ts"), "doctor", ...words], {
    env: { ...process.env, NO_COLOR: "1" },
  });
  let out = "";
  for (const stream of [child.stdout, child.stderr]) stream.setEncoding("utf8").on("data", (text) => (out += text));
  return new Promise((resolve, reject) => {
    child.on("error", reject);
    child.on("close", (code) => resolve({ code, out }));
  });
}

test("on this machine it tests every mechanism; text and JSON agree", { timeout: 60_000 }, async () => {
  const [json, text, wrong] = [await belay("--json"), await belay(), await belay("--require", "jail")];
  const { doctor, tier }: { doctor: Diagnosis; tier: string | null } = JSON.parse(json.out);
  expect(doctor.mechanisms.map(({ mechanism }) => mechanism)).toEqual(MECHANISMS);
  const best = doctor.mechanisms.find(({ test }) => test.kind === "passed");
  expect({ best: doctor.best ?? null, tier }).toEqual({ best: best?.mechanism ?? null, tier: best?.tier ?? null });
  for (const { mechanism } of doctor.mechanisms) expect(text.out).toContain(`${mechanism}: tier `);
  expect(text.code).toBe(json.code);
  expect(wrong).toMatchObject({ code: EXIT_CODE.invalid, out: expect.stringContaining('There is no tier "jail".') });
});

describe("a doctor that is stopped during a test", () => {
  /** Processes whose working directory is below this directory, even if it was removed. */
  const workingIn = (place: string): readonly string[] =>
    readdirSync("/proc").filter((pid) => {
      try {
        return /^\d+$/.test(pid) && readlinkSync(`/proc/${pid}/cwd`).startsWith(`${place}/`);
      } catch {
        return false; // Exited meanwhile, or a kernel thread.
      }
    });

  test.each(["SIGINT", "SIGTERM", "SIGHUP"] as const)("leaves no folder and no process behind: %s", async (signal) => {
    const place = realpathSync(mkdtempSync(join(tmpdir(), "belay-stopped-")));
    onTestFinished(() => rmSync(place, { recursive: true, force: true }));
    const [programs, temporary, up] = [join(place, "programs"), join(place, "temporary"), join(place, "up")];
    for (const path of [programs, temporary]) mkdirSync(path);
    // A program that hangs keeps the self-test running.
    writeFileSync(join(programs, "bwrap"), `#!/bin/sh\necho >'${up}'\nexec sleep 600\n`, { mode: 0o755 });
    const child = spawn(process.execPath, [join(import.meta.dirname, "../../main.ts"), "doctor"], {
      env: { ...process.env, PATH: `${programs}:${process.env.PATH}`, TMPDIR: temporary },
      stdio: "ignore",
    });
    await expect.poll(() => existsSync(up), { timeout: 20_000 }).toBe(true);
    expect(workingIn(temporary)).not.toEqual([]);
    const exited = once(child, "exit");
    child.kill(signal);
    expect(await exited).toEqual([EXIT_SIGNAL[signal], null]);
    expect(readdirSync(temporary)).toEqual([]);
    await expect.poll(() => workingIn(temporary), { timeout: 10_000 }).toEqual([]);
  });
});
