// The options that say which Belay is meant: the running server of this home, another one, or a file.
import { type Command, Option } from "commander";

/** As commander hands them on. */
export interface ConnectionOptions {
  readonly url?: string;
  readonly socket?: string;
  readonly tokenFile?: string;
  readonly home?: string;
  readonly store?: string;
}

const HEADING = "Which Belay (default: the running server of this home):";

/** Adds them to a command. Together they are an argument of `openControl()`. */
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

/** And `--json`, which every command has: on stdout JSON and nothing else. */
export const withJson = (command: Command, what = "one JSON document on stdout, and nothing else there"): Command =>
  command.option("--json", what);

/** An option that may be given several times. Not one that takes all words behind it: the next may be the prompt. */
export const collected = (value: string, before: readonly string[] = []): readonly string[] => [...before, value];
