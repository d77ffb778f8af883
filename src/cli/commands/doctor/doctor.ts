// `belay doctor`: how surely processes can be ended on this machine, how that was tested, and how to do better.
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

/** Tests everything anew: whoever asks a doctor wants to know how it is today. */
export async function runDoctor(options: DoctorOptions): Promise<number> {
  // Leaving at once is in order: what is being tested ends with us.
  const dispose = onStopSignals((signal) => process.exit(EXIT_SIGNAL[signal]));
  const folder = mkdtempSync(join(tmpdir(), "belay-doctor-"));
  const remove = (): void => rmSync(folder, { recursive: true, force: true });
  // At the very end, whichever way that comes.
  process.once("exit", remove);
  try {
    const around = { machine: lookAtMachine(), stateDir: folder, workspace: folder, clock: systemClock };
    return tell(await diagnose({ ...around, fresh: true }), { ...options, terminal: process.stdout.isTTY === true });
  } finally {
    process.removeListener("exit", remove);
    remove();
    dispose();
  }
}

/** Says it, and answers with the exit code. Throws `uncontained` if what is required is not there. */
export function tell(diagnosis: Diagnosis, options: DoctorOptions & { readonly terminal: boolean }): number {
  const { json, require, terminal } = options;
  if (json) print(JSON.stringify({ doctor: diagnosis, tier: bestOf(diagnosis)?.tier ?? null }));
  else for (const line of report(diagnosis, terminal)) print(line);
  return verdict(diagnosis, require);
}

/** The tier that a word names. */
export function tierOf(word: string): Tier {
  const found = TIERS.find((tier) => tier === word);
  if (found !== undefined) return found;
  throw new ControlError("invalid", `There is no tier "${word.slice(0, 40)}".`, {
    hint: `They are, best first: ${TIERS.join(", ")}.`,
  });
}

const bestOf = ({ mechanisms, best }: Diagnosis): Finding | undefined =>
  mechanisms.find(({ mechanism }) => mechanism === best);

/** In order, if every tree surely ends that does not set out to escape: the last tier does not promise that much. */
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
    hint: fixes.length === 0 ? "Nobody knows a fix for this machine: use another." : [...new Set(fixes)].join(" Or: "),
  });
}

/** A table for people at a terminal; else lines that can be searched, each complete in itself. */
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

/** Of what is not there, that it is missing is all there is to say. */
const why = ({ available, test }: Finding): readonly string[] =>
  available && test.kind === "failed" ? [plainLine(test.why)] : [];

/** Wide enough for the longest of their names. */
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
