// Prints the output of the command line. Colours are used only on a terminal, and not if NO_COLOR is set.
import { styleText } from "node:util";
import { toControlError } from "../../../core/errors.ts";
import { plainLine, plainText } from "../format/plain-text.ts";

/** The column at which explanations begin. */
const INDENT = " ".repeat(10);
const WIDTH = 100;

export function print(text = ""): void {
  process.stdout.write(`${text}\n`);
}

export function printHeading(text: string): void {
  print(`\n${styleText("bold", text)}`);
}

/** Prints one line of a conversation. Line breaks in the text are removed. */
export function printLine(who: "you" | "agent" | "belay", text: string): void {
  for (const [at, line] of wrap(plainLine(text), WIDTH - INDENT.length).entries()) {
    print(`  ${styleText(COLOURS[who], (at === 0 ? who : "").padEnd(7))} ${line}`);
  }
}

/** Explains the line above. */
export function printMeaning(text: string): void {
  for (const line of wrap(text, WIDTH - INDENT.length)) print(`${INDENT}${styleText("dim", line)}`);
}

/** Prints an error: what happened, what to do, and whether a retry may help. */
export function printError(thrown: unknown): void {
  const error = toControlError(thrown);
  // Parts may come from a server and contain names that others chose, so they are sanitised.
  const lines = [styleText("red", `belay: ${plainText(error.message)}`, { stream: process.stderr })];
  lines.push(`  ${plainText(error.hint)}${error.retryable ? " (It may work if you try again.)" : ""}`);
  if (error.cause instanceof Error && error.code === "internal") lines.push(`  ${error.cause.stack ?? error.cause}`);
  process.stderr.write(`${lines.join("\n")}\n`);
}

function wrap(text: string, width: number): readonly string[] {
  const lines: string[] = [];
  let line = "";
  for (const word of text.split(" ")) {
    if (line !== "" && line.length + 1 + word.length > width) {
      lines.push(line);
      line = word;
    } else line = line === "" ? word : `${line} ${word}`;
  }
  return [...lines, line];
}

const COLOURS = { you: "cyan", agent: "magenta", belay: "green" } as const;
