// Validates requests for processes, before anything is recorded. What only the machine knows is checked by the spawner.
import { type Problem, problemOfCommand, problemOfPath } from "../../core/argument.ts";
import { ControlError } from "../../core/errors.ts";
import { checkMs, invalid, isObject, rejectUnknown } from "../../core/input.ts";
import { TERMINAL_CELLS_MAX } from "../../core/limits.ts";
import type { Feedback } from "../../core/model/event.ts";
import type { CommandLine, Profile, RunOptions, StartOptions } from "../../ports/spawner.ts";

/** A day: a process that runs longer is a service, and needs a service manager. */
const TIMEOUT_MS_MAX = 24 * 60 * 60_000;

export function checkCommand(given: unknown): CommandLine {
  if (typeof given === "string") {
    if (given.trim() === "") throw invalid("The command is empty.");
    refuse(problemOfCommand(given));
    return given;
  }
  // Copied first: `every` skips the holes of a list.
  const args: readonly unknown[] = Array.isArray(given) ? [...given] : [];
  if (!isArguments(args)) {
    throw invalid('A command is a text for the shell, or a list of arguments: ["git", "status"].');
  }
  if (args[0] === "") throw invalid("The first argument, the program, is empty.");
  refuse(problemOfCommand(args));
  return args;
}

const isArguments = (args: readonly unknown[]): args is readonly [string, ...string[]] =>
  args.length > 0 && args.every((one) => typeof one === "string");

function refuse(problem: Problem | undefined): void {
  if (problem === undefined) return;
  const { message, hint } = problem;
  throw new ControlError("invalid", message, hint === undefined ? {} : { hint });
}

export function checkStart(given: StartOptions): StartOptions {
  checkObject(given, "start()");
  const { feedback, lasting, ...rest } = given;
  checkSpawn(rest, "start()");
  if (lasting !== undefined && lasting !== true) throw invalid("`lasting` is true, or left out.");
  return {
    ...rest,
    ...(feedback === undefined ? {} : { feedback: checkFeedback(feedback) }),
    ...(lasting === undefined ? {} : { lasting }),
  };
}

export function checkRun(given: RunOptions): RunOptions {
  checkObject(given, "run()");
  const { feedback, backgroundAfterMs, ...rest } = given;
  checkSpawn(rest, "run()");
  if (backgroundAfterMs !== undefined) checkMs(backgroundAfterMs, "backgroundAfterMs", TIMEOUT_MS_MAX);
  return {
    ...rest,
    ...(feedback === undefined ? {} : { feedback: checkFeedback(feedback) }),
    ...(backgroundAfterMs === undefined ? {} : { backgroundAfterMs }),
  };
}

function checkObject(given: unknown, what: string): void {
  if (!isObject(given)) throw invalid(`The options of ${what} are an object.`);
}

function checkSpawn(given: StartOptions, what: string): void {
  const { cwd, env, inherit, profile, stdin, hear, terminal, limits, graceMs, timeoutMs, within, ...rest } = given;
  rejectUnknown(rest, what);
  if (cwd !== undefined && (typeof cwd !== "string" || cwd === "")) throw invalid("`cwd` is a path.");
  if (cwd !== undefined) refuse(problemOfPath(cwd, "`cwd`"));
  if (env !== undefined) checkEnv(env);
  if (profile !== undefined && !PROFILES.some((one) => one === profile)) {
    throw invalid('`profile` is "none", "contain" or "workspace".');
  }
  if (stdin !== undefined && stdin !== "open" && stdin !== "closed") throw invalid('`stdin` is "open" or "closed".');
  if (inherit !== undefined && inherit !== "listed" && inherit !== "all" && !isEnvironment(inherit)) {
    throw invalid('`inherit` is "listed", "all" or an environment.');
  }
  if (hear !== undefined && typeof hear !== "function") throw invalid("`hear` is a function.");
  if (terminal !== undefined) checkSize(terminal);
  if (limits !== undefined) checkLimits(limits);
  if (within !== undefined && (!isObject(within) || !Array.isArray(within.kept))) {
    throw invalid("`within` names a process, and the processes of its tree that are left out.");
  }
  if (graceMs !== undefined) checkMs(graceMs, "graceMs", 30_000);
  if (timeoutMs !== undefined) checkMs(timeoutMs, "timeoutMs", TIMEOUT_MS_MAX);
}

const isEnvironment = (given: unknown): boolean =>
  isObject(given) && Object.values(given).every((value) => value === undefined || typeof value === "string");

function checkEnv(env: unknown): void {
  if (!isObject(env) || Object.values(env).some((value) => typeof value !== "string")) {
    throw invalid("`env` is an object of texts.");
  }
}

export function checkSize(given: unknown): void {
  const whole = (n: unknown): boolean => Number.isInteger(n) && Number(n) >= 1 && Number(n) <= TERMINAL_CELLS_MAX;
  if (!isObject(given) || !whole(given.columns) || !whole(given.rows)) {
    throw invalid(`The size of a terminal is { columns, rows }, each from 1 to ${TERMINAL_CELLS_MAX}.`);
  }
}

function checkLimits(given: unknown): void {
  if (!isObject(given)) throw invalid("`limits` is an object of numbers.");
  const { processesMax, memoryBytesMax, fileBytesMax, cpuSecondsMax, outputBytesMax, ...rest } = given;
  rejectUnknown(rest, "`limits`");
  const all = { processesMax, memoryBytesMax, fileBytesMax, cpuSecondsMax, outputBytesMax };
  for (const [name, value] of Object.entries(all)) {
    if (value !== undefined && (!Number.isSafeInteger(value) || Number(value) < 1)) {
      throw invalid(`\`limits.${name}\` is a whole number from 1.`);
    }
  }
}

function checkFeedback(given: unknown): Feedback {
  if (given === "wake" || given === "next-turn" || given === "silent") return given;
  throw invalid('`feedback` is "wake", "next-turn" or "silent".');
}

const PROFILES: readonly Profile[] = ["none", "contain", "workspace"];
