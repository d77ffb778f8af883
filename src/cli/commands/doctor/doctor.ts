// `belay doctor`: tests the containment of processes on this machine, and suggests fixes.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { styleText } from "node:util";
import { ControlError } from "../../../core/errors.ts";
import type { Tier } from "../../../ports/spawner.ts";
import { type Diagnosis, diagnose, type Finding } from "../../../process/containment/doctor.ts";
import { lookAtMachine } from "../../../process/containment/machine.ts";
import { isAtLeast, TIERS } from "../../../process/containment/mechanisms.ts";
import { systemClock } from "../../../system/system-clock.ts";
import { EXIT_CODE, EXIT_FOUND, EXIT_OK, EXIT_SIGNAL } from "../../shared/exit-code.ts";
import { plainLine } from "../../shared/format/plain-text.ts";
import { onStopSignals } from "../../shared/stop-signals.ts";
import { print } from "../../shared/terminal/terminal.ts";

export interface DoctorOptions {
  readonly json: boolean;
  readonly require: Tier | undefined;
}

/** Runs every test again; cached results are not used. */
export async function runDoctor(options: DoctorOptions): Promise<number> {
  // An immediate exit is safe: the processes under test end with this one.
  const unsubscribe = onStopSignals((signal) => process.exit(EXIT_SIGNAL[signal]));
  const folder = mkdtempSync(join(tmpdir(), "belay-doctor-"));
  const remove = (): void => rmSync(folder, { recursive: true, force: true });
  // Runs at every exit, including one by a signal.
  process.once("exit", remove);
  try {
    const request = { machine: lookAtMachine(), stateDir: folder, workspace: folder, clock: systemClock };
    return printDiagnosis(await diagnose({ ...request, fresh: true }), {
      ...options,
      terminal: process.stdout.isTTY === true,
    });
  } finally {
    process.removeListener("exit", remove);
    remove();
    unsubscribe();
  }
}

/** Prints the diagnosis and returns the exit code. Throws `uncontained` if the required tier is not available. */
export function printDiagnosis(diagnosis: Diagnosis, options: DoctorOptions & { readonly terminal: boolean }): number {
  const { json, require, terminal } = options;
  if (json) print(JSON.stringify({ doctor: diagnosis, tier: bestOf(diagnosis)?.tier ?? null }));
  else for (const line of report(diagnosis, terminal)) print(line);
  return verdict(diagnosis, require);
}

/** Parses the name of a tier. */
export function tierOf(word: string): Tier {
  const found = TIERS.find((tier) => tier === word);
  if (found !== undefined) return found;
  throw new ControlError("invalid", `There is no tier "${word.slice(0, 40)}".`, {
    hint: `They are, best first: ${TIERS.join(", ")}.`,
  });
}

const bestOf = ({ mechanisms, best }: Diagnosis): Finding | undefined =>
  mechanisms.find(({ mechanism }) => mechanism === best);

/** The exit code. The lowest tier is a finding: with it, a process tree that tries to escape may survive. */
function verdict(diagnosis: Diagnosis, required: Tier | undefined): number {
  const best = bestOf(diagnosis);
  if (required !== undefined && (best === undefined || !isAtLeast(best.tier, required))) {
    throw missing(diagnosis, required, best);
  }
  if (best === undefined) return EXIT_CODE.uncontained;
  return required !== undefined || isAtLeast(best.tier, "anchor") ? EXIT_OK : EXIT_FOUND;
}

function missing({ mechanisms }: Diagnosis, required: Tier, best: Finding | undefined): ControlError {
  const has = best === undefined ? "nothing here holds processes" : `the best this machine has is "${best.tier}"`;
  const fixes = mechanisms.flatMap(({ tier, fix }) => (isAtLeast(tier, required) && fix !== undefined ? [fix] : []));
  return new ControlError("uncontained", `Tier "${required}" is required, and ${has}.`, {
    hint: fixes.length === 0 ? "No fix is known for this machine: use another." : [...new Set(fixes)].join(" Or: "),
  });
}

/** A table for a terminal; otherwise lines for grep, each complete in itself. */
export function report(diagnosis: Diagnosis, terminal: boolean): readonly string[] {
  const { platform, kernel, mechanisms, notes } = diagnosis;
  const head = `${platform}, kernel ${kernel}`;
  const body = terminal ? table(mechanisms, diagnosis.best) : mechanisms.flatMap(lines);
  return [head, ...body, ...notes.map((note) => `note: ${note}`), conclusion(bestOf(diagnosis))].map((line) =>
    terminal ? line : plainLine(line),
  );
}

function conclusion(best: Finding | undefined): string {
  if (best === undefined) return "Nothing here holds processes, so none are started.";
  const { mechanism, tier } = best;
  return `Processes are held by ${mechanism}: tier "${tier}". ${MEANING[tier]}`;
}

const MEANING: Readonly<Record<Tier, string>> = {
  namespace: "Whatever a command starts ends with it, and with the server.",
  cgroup: "Whatever a command starts ends with it.",
  anchor: "Whatever a command starts ends with it, unless it kills what holds it.",
  group: "What a command starts ends with it, unless it sets out to escape: then it does.",
};

function lines(finding: Finding): readonly string[] {
  const { mechanism, tier, profiles, limits, fix } = finding;
  return [
    `${mechanism}: tier ${tier}, ${stateOf(finding)}${profiles.length === 0 ? "" : `, profiles ${profiles.join(" ")}`}`,
    ...why(finding).map((text) => `${mechanism}: why: ${text}`),
    ...(fix === undefined ? [] : [`${mechanism}: fix: ${fix}`]),
    ...(finding.test.kind === "passed" ? limits.map((limit) => `${mechanism}: limit: ${limit}`) : []),
  ];
}

function stateOf({ available, test }: Finding): string {
  if (test.kind === "passed") return "works";
  return available ? "does not work" : "not there";
}

/** The reason of a failed test. A mechanism that is not installed has none. */
const why = ({ available, test }: Finding): readonly string[] =>
  available && test.kind === "failed" ? [plainLine(test.why)] : [];

/** Column widths: enough for the longest name. */
const WIDTHS = [12, 11, 15] as const;

function table(mechanisms: readonly Finding[], best: Finding["mechanism"] | undefined): readonly string[] {
  const row = (cells: readonly string[]): string => cells.map((cell, at) => cell.padEnd(WIDTHS[at] ?? 0)).join("");
  const rows = mechanisms.flatMap((finding) => {
    const { mechanism, tier, test, profiles, limits, fix } = finding;
    const line = row([mechanism, tier, stateOf(finding), profiles.join(" ")]).trimEnd();
    const colour = test.kind === "passed" ? (mechanism === best ? "green" : "reset") : "dim";
    return [
      `${mechanism === best ? "*" : " "} ${styleText(colour, line)}`,
      ...why(finding).map((text) => `      ${styleText("red", "why")}    ${text}`),
      ...(fix === undefined ? [] : [`      ${styleText("yellow", "fix")}    ${fix}`]),
      ...(test.kind === "passed" ? limits.map((limit) => `      ${styleText("dim", `limit  ${limit}`)}`) : []),
    ];
  });
  return ["", `  ${styleText("bold", row(["mechanism", "tier", "here", "profiles"]))}`, ...rows, ""];
}
