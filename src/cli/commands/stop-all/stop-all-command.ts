// `belay stop-all`: its options.
import { Command } from "commander";
import { act } from "../../shared/action.ts";
import { withConnectionOptions, withJson } from "../../shared/connection-options.ts";
import { withExamples } from "../../shared/examples.ts";
import type { StopAllFlags } from "./stop-all.ts";

export function stopAllCommand(): Command {
  const command = new Command("stop-all")
    .description("stops all running and queued work, in every session")
    .option("--reason <text>", "why: kept in the log")
    .option("--wait [ms]", "wait for the end of all of it, by default up to 30000 ms")
    .option("--keep-background", "keep background processes running")
    .option("-y, --yes", "do not ask first; without a terminal it never asks")
    .action((flags: StopAllFlags) => act(async () => (await import("./stop-all.ts")).runStopAll(flags)));
  return withExamples(withJson(withConnectionOptions(command)), [
    ["belay stop-all", "asks first, at a terminal"],
    ["belay stop-all --yes --wait", "at once, and says how each run ended"],
  ]);
}
