// Files attached to a prompt, in its `data`: `{ attachments: [{ name, mediaType, text | base64 }] }`. Pure.
import { ControlError } from "../core/errors.ts";
import type { Json, Prompt } from "../core/model/prompt.ts";
import type { UserContent, UserPart } from "./model/provider-prompt.ts";
import { isJsonObject } from "./plain-json.ts";
import { ATTACHMENT_BYTES_MAX, ATTACHMENT_NAME_CHARS_MAX, ATTACHMENTS_MAX } from "./tools/files/file-limits.ts";

export type Attachment =
  | { readonly name: string; readonly mediaType: string; readonly text: string }
  | { readonly name: string; readonly mediaType: string; readonly base64: string };

const MEDIA_TYPE = /^[a-z]+\/[a-z0-9][a-z0-9.+-]{0,80}$/;
const BASE64 = /^[A-Za-z0-9+/]*={0,2}$/;

/** Media types that providers accept as files. The model gets only the name of any other file that is not text. */
const SHOWN: ReadonlySet<string> = new Set([
  ...["image/png", "image/jpeg", "image/gif", "image/webp", "application/pdf"],
]);

const BY_EXTENSION: Readonly<Record<string, string>> = {
  ...{ png: "image/png", jpg: "image/jpeg", jpeg: "image/jpeg", gif: "image/gif", webp: "image/webp" },
  ...{ pdf: "application/pdf", zip: "application/zip", gz: "application/gzip", wasm: "application/wasm" },
  ...{
    md: "text/markdown",
    html: "text/html",
    css: "text/css",
    csv: "text/csv",
    xml: "text/xml",
    svg: "image/svg+xml",
  },
  ...{ json: "application/json", yaml: "application/yaml", yml: "application/yaml", toml: "application/toml" },
};

/**
 * Makes an attachment of a file. It becomes text if its bytes are text, whatever its name. Throws `invalid` if it is
 * too large.
 */
export function attachment(name: string, bytes: Uint8Array): Attachment {
  if (bytes.length > ATTACHMENT_BYTES_MAX) {
    throw new ControlError(
      "invalid",
      `The attachment ${JSON.stringify(name)} has ${bytes.length} bytes; at most ${ATTACHMENT_BYTES_MAX} can be sent.`,
      { hint: "Put it into the workspace, and name it in the prompt." },
    );
  }
  const short = (name.split(/[\\/]/).at(-1) || "file").slice(-ATTACHMENT_NAME_CHARS_MAX);
  const known = BY_EXTENSION[/\.([a-z0-9]+)$/.exec(short.toLowerCase())?.[1] ?? ""];
  const text = known !== undefined && SHOWN.has(known) ? undefined : textOf(bytes);
  if (text !== undefined) return { name: short, mediaType: known ?? "text/plain", text };
  const base64 = Buffer.from(bytes).toString("base64");
  return { name: short, mediaType: known ?? "application/octet-stream", base64 };
}

function textOf(bytes: Uint8Array): string | undefined {
  if (bytes.includes(0)) return undefined;
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    return undefined;
  }
}

/** Reads the attachments of a prompt's data. Malformed attachments, and data of another shape, are ignored. */
export function attachmentsOf(data: Json | undefined): readonly Attachment[] {
  if (!isJsonObject(data) || !Array.isArray(data.attachments)) return [];
  return data.attachments.slice(0, ATTACHMENTS_MAX).flatMap(readAttachment);
}

function readAttachment(given: Json): readonly Attachment[] {
  if (!isJsonObject(given)) return [];
  const { name, mediaType, text, base64 } = given;
  if (typeof name !== "string" || name === "" || name.length > ATTACHMENT_NAME_CHARS_MAX) return [];
  if (typeof mediaType !== "string" || !MEDIA_TYPE.test(mediaType)) return [];
  if (typeof text === "string" && base64 === undefined) return [{ name, mediaType, text }];
  if (typeof base64 !== "string" || text !== undefined) return [];
  return base64.length % 4 === 0 && BASE64.test(base64) ? [{ name, mediaType, base64 }] : [];
}

/** A prompt for the model with its attachments: text as text, pictures and PDF as files, others by name only. */
export const userWithAttachments: UserContent = (prompt: Prompt): readonly UserPart[] => [
  { type: "text", text: prompt.text },
  ...attachmentsOf(prompt.data).map(partOf),
];

function partOf(given: Attachment): UserPart {
  const { name, mediaType } = given;
  const label = `name=${JSON.stringify(name).replaceAll(/[<>]/g, "_")} type="${mediaType}"`;
  if ("text" in given) {
    // An attached text must not close the tag around it.
    const inner = given.text.replaceAll(/<(?=\/attachment)/gi, "&lt;");
    return { type: "text", text: `<attachment ${label}>\n${inner}\n</attachment>` };
  }
  if (SHOWN.has(mediaType)) {
    return { type: "file", mediaType, filename: name, data: { type: "data", data: given.base64 } };
  }
  const bytes = Math.floor((given.base64.length * 3) / 4);
  return { type: "text", text: `<attachment ${label}>About ${bytes} bytes that cannot be shown to you.</attachment>` };
}
