// Implements `write_file` and `edit_file`.
import type { LiveCall } from "../../../ports/agent.ts";
import { invalid, listed, shown } from "./file-errors.ts";
import { FILE_BLOCK_BYTES, FILE_EDIT_BYTES_MAX } from "./file-limits.ts";
import { type FilePath, locate, notThere, openFile } from "./file-path.ts";
import type { EditFileInput, WriteFileInput } from "./file-tools-input.ts";
import { type FileToolsContext, groundOf } from "./file-tools-options.ts";
import { changedSince, checkWritable, type FileVersion, replaceFile, versionOf } from "./file-write.ts";

export async function writeFile(
  context: FileToolsContext,
  { path, text }: WriteFileInput,
  call: LiveCall,
): Promise<string> {
  const ground = groundOf(context, call);
  const found = await locate(ground, path);
  checkWritable(found);
  return context.files.exclusively(found.path, async () => {
    // Checked again under the lock: an earlier write may have created it.
    const place = await locate(ground, path);
    checkWritable(place);
    const bytes = Buffer.from(text);
    const over = place.missing.length > 0 ? undefined : await versionAt(place);
    checkSeen(context, place, over, call);
    await put(context, place, { bytes, over }, call);
    const size = `${bytes.length} bytes, ${lineCount(text)} lines`;
    return `${over === undefined ? "Made" : "Replaced"} ${listed(place.name)}: ${size}.`;
  });
}

export async function editFile(context: FileToolsContext, input: EditFileInput, call: LiveCall): Promise<string> {
  if (input.old === "") throw invalid("`old` is empty. Use write_file to make a file. Nothing was done.");
  if (input.old === input.new) throw invalid("`old` and `new` are the same. Nothing was done.");
  const ground = groundOf(context, call);
  const found = await locate(ground, input.path);
  checkWritable(found);
  return context.files.exclusively(found.path, async () => {
    const place = await locate(ground, input.path);
    checkWritable(place);
    if (place.missing.length > 0) throw await notThere(place);
    const { text, version } = await wholeText(place, call.signal);
    checkSeen(context, place, version, call);
    const edited = replaced(text, input, place.name);
    await put(context, place, { bytes: Buffer.from(edited.text), over: version }, call);
    const { places, line } = edited;
    const where = places === 1 ? `at line ${line}` : `${places} places, from line ${line} on`;
    return `Edited ${listed(place.name)}: ${where}.`;
  });
}

async function put(
  { files }: FileToolsContext,
  place: FilePath,
  what: { readonly bytes: Uint8Array; readonly over: FileVersion | undefined },
  call: LiveCall,
): Promise<void> {
  const { callId, signal } = call;
  const version = await replaceFile(place, { ...what, callId, signal });
  call.changed(place.name);
  files.note(call.sessionId, place.path, version);
}

/** Throws if the file has changed since the session read it. A file that the session never read may be overwritten. */
function checkSeen(
  { files }: FileToolsContext,
  place: FilePath,
  now: FileVersion | undefined,
  { sessionId }: LiveCall,
): void {
  const seen = files.seen(sessionId, place.path);
  if (seen !== undefined && now !== undefined && seen !== now) throw changedSince(place.name);
}

async function versionAt(place: FilePath): Promise<FileVersion> {
  const handle = await openFile(place);
  try {
    return versionOf(await handle.stat({ bigint: true }));
  } finally {
    await handle.close();
  }
}

/** Reads the whole file, which is written back as a whole. Only valid UTF-8 survives that unchanged. */
async function wholeText(place: FilePath, signal: AbortSignal): Promise<{ text: string; version: FileVersion }> {
  const name = shown(place.name);
  const handle = await openFile(place);
  try {
    const stat = await handle.stat({ bigint: true });
    if (stat.size > FILE_EDIT_BYTES_MAX) {
      throw invalid(`${name} has ${stat.size} bytes; files of up to ${FILE_EDIT_BYTES_MAX} can be edited.`);
    }
    const bytes = Buffer.alloc(Number(stat.size));
    let filled = 0;
    while (filled < bytes.length) {
      signal.throwIfAborted();
      const { bytesRead } = await handle.read(bytes, filled, Math.min(FILE_BLOCK_BYTES, bytes.length - filled), filled);
      if (bytesRead === 0) throw changedSince(place.name);
      filled += bytesRead;
    }
    try {
      // Keeps a byte order mark, so that it is written back.
      const text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
      return { text, version: versionOf(stat) };
    } catch (error) {
      throw invalid(`${name} is not valid UTF-8. Editing it as text would damage it. Nothing was done.`, error);
    }
  } finally {
    await handle.close();
  }
}

interface Edited {
  readonly text: string;
  readonly places: number;
  /** The line of the first replacement. */
  readonly line: number;
}

function replaced(text: string, { old: wanted, new: next, all = false }: EditFileInput, name: string): Edited {
  // Models neither see nor write carriage returns.
  const isReturned = !text.includes(wanted) && text.includes("\r\n");
  const [from, to] = isReturned ? [returned(wanted), returned(next)] : [wanted, next];
  const pieces = text.split(from);
  const places = pieces.length - 1;
  if (places === 0) {
    throw invalid(`The old text is not in ${shown(name)}. Nothing was done. Read it again, and copy the text exactly.`);
  }
  if (places > 1 && !all) {
    throw invalid(
      `The old text is in ${shown(name)} ${places} times. Nothing was done. Add lines around it, or say \`all\`.`,
    );
  }
  return { text: pieces.join(to), places, line: lineCount(`${pieces[0] ?? ""}.`) };
}

const returned = (text: string): string => text.replaceAll(/\r?\n/g, "\r\n");

/** Counts the last line even if it has no line break. */
function lineCount(text: string): number {
  if (text === "") return 0;
  return text.split("\n").length - (text.endsWith("\n") ? 1 : 0);
}
