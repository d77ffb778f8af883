// The options that select a Belay: the running server of this data directory, another server, or a store file.
import { type Command, Option } from "commander";

/** As commander returns them. */
export interface ConnectionOptions {
  readonly url?: string;
  readonly socket?: string;
  readonly tokenFile?: string;
  readonly home?: string;
  readonly store?: string;
}

const HEADING = "Which Belay (default: the running server of this home):";

/** Adds the connection options to a command. Their values are an argument of `openControl()`. */
export function withConnectionOptions(command: Command): Command {
  return command
    .addOption(new Option("--url <url>", "a server at this address").conflicts(["socket", "store"]).helpGroup(HEADING))
    .addOption(new Option("--socket <path>", "a server at this unix socket").conflicts("store").helpGroup(HEADING))
    .addOption(
      new Option("--store <file>", "the program that has this store open; if none has, the file itself").helpGroup(
        HEADING,
      ),
    )
    .addOption(
      new Option("--token-file <file>", "holds the token (else BELAY_TOKEN, else that of the home)").helpGroup(HEADING),
    )
    .addOption(new Option("--home <dir>", "where Belay keeps its things (else BELAY_HOME)").helpGroup(HEADING));
}

/** Adds `--json`, which every command has: only JSON on stdout. */
export const withJson = (command: Command, what = "one JSON document on stdout, and nothing else there"): Command =>
  command.option("--json", what);

/** An option that may be repeated. It is not variadic: the next word may be the prompt. */
export const collected = (value: string, before: readonly string[] = []): readonly string[] => [...before, value];
