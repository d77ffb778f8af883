// The command line: finds the command, carries it out, and leaves an exit code.
import { readFileSync } from "node:fs";
import { type ParseArgsConfig, parseArgs } from "node:util";
import { ControlError, toControlError } from "../core/control-error.ts";
import { suggest } from "../core/suggest.ts";
import { EXIT_CODE, EXIT_OK } from "./exit-code.ts";
import { print, printError } from "./terminal.ts";

const HELP = `Belay: the run-control plane for AI agents. The stop button that always works.

  belay demo [--fast]          a tour in the terminal, without keys or network
  belay demo --hands-on        the same agent, and every stop button under your own fingers
  belay verify FILE [--json]   checks every log in a store against Belay's promises
  belay doctor [--json]        how surely processes can be ended on this machine, tested, and how to do better
  belay --help                 this
  belay --version

  --fast   no pauses for reading
  --json   ends with one line of JSON
  --require TIER   of doctor: fails unless processes are held that surely: namespace, cgroup, anchor or group

Exit codes: 0 in order, 1 \`verify\` found something, or \`doctor\` only the last tier, 2 wrong usage, 3 no such file,
11 the file is in use, 12 the file is damaged, 13 the file is of a newer Belay, 16 processes are not held (as surely as
required), 70 a fault in Belay. 129, 130 and 143: stopped by a signal.
`;

const COMMANDS = ["demo", "verify", "doctor", "help", "version"] as const;

async function main(words: readonly string[]): Promise<number> {
  const [command, ...rest] = words;
  switch (command) {
    case undefined:
    case "help":
    case "--help":
    case "-h":
      print(HELP);
      return EXIT_OK;
    case "version":
    case "--version":
    case "-v":
      print(version());
      return EXIT_OK;
    case "demo":
      return demo(rest);
    case "verify":
      return verify(rest);
    case "doctor":
      return doctor(rest);
    default:
      throw unknownCommand(command);
  }
}

// Commands are loaded when they are asked for: `belay --help` starts neither a database nor an engine.

async function demo(words: readonly string[]): Promise<number> {
  const { values, positionals } = read(words, {
    ...({ fast: { type: "boolean" }, "hands-on": { type: "boolean" } } as const),
    help: { type: "boolean", short: "h" },
  });
  if (values.help === true) return main(["help"]);
  if (positionals.length > 0) throw usage(`demo takes no ${positionals[0]}.`, "Try: belay demo");
  const pace = values.fast === true ? "fast" : "reading";
  if (values["hands-on"] === true) return (await import("./hands-on.ts")).runHandsOn({ pace });
  return (await import("./demo.ts")).runDemo({ pace });
}

async function verify(words: readonly string[]): Promise<number> {
  const { values, positionals } = read(words, { json: { type: "boolean" }, help: { type: "boolean", short: "h" } });
  if (values.help === true) return main(["help"]);
  const [file, ...more] = positionals;
  if (file === undefined) throw usage("verify needs to know which file.", "Try: belay verify belay.db");
  if (more.length > 0) throw usage("verify takes one file at a time.", `Try: belay verify ${file}`);
  const { verifyFile } = await import("./verify.ts");
  return verifyFile({ file, json: values.json === true });
}

async function doctor(words: readonly string[]): Promise<number> {
  const { values, positionals } = read(words, {
    ...({ json: { type: "boolean" }, require: { type: "string" } } as const),
    help: { type: "boolean", short: "h" },
  });
  if (values.help === true) return main(["help"]);
  if (positionals.length > 0) throw usage(`doctor takes no ${positionals[0]}.`, "Try: belay doctor");
  const { runDoctor, tierOf } = await import("./doctor.ts");
  const require = values.require === undefined ? undefined : tierOf(values.require);
  return runDoctor({ json: values.json === true, require });
}

type Options = NonNullable<ParseArgsConfig["options"]>;

function read<O extends Options>(words: readonly string[], options: O) {
  try {
    return parseArgs({ args: [...words], options, allowPositionals: true, strict: true });
  } catch (error) {
    const said = error instanceof Error ? error.message : String(error);
    const typed = /'--([^'=]+)/.exec(said)?.[1];
    const meant = typed === undefined ? undefined : suggest(typed, Object.keys(options));
    if (typed === undefined) throw usage(said, "belay --help lists what there is.");
    throw usage(
      `There is no option --${typed}.`,
      meant === undefined ? "belay --help lists what there is." : `Did you mean --${meant}?`,
    );
  }
}

function unknownCommand(typed: string): ControlError {
  const meant = suggest(typed.replace(/^-+/, ""), COMMANDS);
  const hint = meant === undefined ? "belay --help lists what there is." : `Did you mean: belay ${meant}?`;
  return usage(`There is no command "${typed.slice(0, 40)}".`, hint);
}

const usage = (message: string, hint: string): ControlError => new ControlError("invalid", message, { hint });

/** Beside `src` and beside `dist` alike. */
function version(): string {
  const text = readFileSync(new URL("../../package.json", import.meta.url), "utf8");
  const about: unknown = JSON.parse(text);
  return typeof about === "object" && about !== null && "version" in about ? String(about.version) : "unknown";
}

// Whoever reads our output may stop reading (`belay demo | head`). That is theirs to decide, and no error.
process.stdout.on("error", (error: NodeJS.ErrnoException) => {
  if (error.code === "EPIPE") process.exit(EXIT_OK);
  throw error;
});

/** Leaves once everything is said. Not by itself: a tool that was given up may still hold a timer or a socket. */
function leave(code: number): void {
  process.stdout.write("", () => process.stderr.write("", () => process.exit(code)));
}

main(process.argv.slice(2)).then(leave, (error: unknown) => {
  printError(error);
  leave(EXIT_CODE[toControlError(error).code]);
});
