// Reads the prompt of `belay run` from the command line or stdin, and its attachments.
import { isUtf8 } from "node:buffer";
import { readFile, stat } from "node:fs/promises";
import { basename } from "node:path";
import type { Readable } from "node:stream";
import { attachment } from "../../../agent/attachment.ts";
import { ControlError } from "../../../core/errors.ts";
import { PROMPT_BYTES_MAX } from "../../../core/limits.ts";
import type { Prompt } from "../../../core/model/prompt.ts";

export interface PromptSource {
  /** The argument. `-`: from stdin. */
  readonly text: string | undefined;
  readonly files: readonly string[];
  readonly stdin: Readable & { readonly isTTY?: boolean };
}

export async function readPrompt({ text, files, stdin }: PromptSource): Promise<Prompt> {
  const prompt = await promptText(text, stdin);
  if (prompt.trim() === "") {
    throw new ControlError("invalid", "The prompt is empty.", { hint: 'Try: belay run "What is in this folder?"' });
  }
  if (files.length === 0) return { text: prompt };
  const attachments = await Promise.all(files.map(async (file) => attachment(basename(file), await bytesOf(file))));
  return { text: prompt, data: { attachments } };
}

async function promptText(typed: string | undefined, stdin: PromptSource["stdin"]): Promise<string> {
  if (typed !== undefined && typed !== "-") return typed;
  // Only `-` reads from a terminal, until Ctrl-D: a forgotten prompt should be an error, not a silent wait.
  if (typed === undefined && stdin.isTTY === true) {
    throw new ControlError("invalid", "There is no prompt.", {
      hint: 'Give one: belay run "What is in this folder?", or pipe one in, or type it after: belay run -',
    });
  }
  return readAll(stdin);
}

async function readAll(stdin: Readable): Promise<string> {
  const pieces: Buffer[] = [];
  let bytes = 0;
  for await (const piece of stdin) {
    const part = Buffer.from(piece);
    bytes += part.length;
    if (bytes > PROMPT_BYTES_MAX) throw tooLarge("The input from stdin");
    pieces.push(part);
  }
  const whole = Buffer.concat(pieces);
  if (isUtf8(whole)) return whole.toString("utf8");
  throw new ControlError("invalid", "The input from stdin is not UTF-8 text.", {
    hint: 'Send it along as a file: belay run "What is this?" --file FILE',
  });
}

async function bytesOf(file: string): Promise<Uint8Array> {
  try {
    const found = await stat(file);
    if (!found.isFile()) throw new ControlError("invalid", `${file} is not a file.`, { hint: "Attach files only." });
    if (found.size > PROMPT_BYTES_MAX) throw tooLarge(file);
    return await readFile(file);
  } catch (error) {
    if (error instanceof ControlError) throw error;
    throw new ControlError("not_found", `${file} cannot be read.`, { hint: "Check its name.", cause: error });
  }
}

const tooLarge = (what: string): ControlError =>
  new ControlError("invalid", `${what} is larger than a prompt may be: ${PROMPT_BYTES_MAX} bytes.`, {
    hint: "Put it into the workspace and name it in the prompt: the agent can read files there.",
  });
