// Converts content blocks of a client into a prompt: a text with attachments.
import type { ContentBlock } from "@agentclientprotocol/sdk";
import type { Json, Prompt } from "../../../core/model/prompt.ts";
import { invalidParams } from "./rpc-error.ts";

type Attached = { readonly name: string; readonly mediaType: string } & (
  | { readonly text: string }
  | { readonly base64: string }
);

/** Texts in order, links by name and address, everything else as attachments. */
export function promptOf(blocks: readonly (ContentBlock | { readonly type: string })[]): Prompt {
  const texts: string[] = [];
  const attachments: Attached[] = [];
  for (const block of blocks) {
    if (!isKnown(block)) throw unsupported(block.type);
    switch (block.type) {
      case "text":
        texts.push(block.text);
        break;
      case "resource_link":
        texts.push(`[${block.name}](${block.uri})`);
        break;
      case "image":
        attachments.push({ name: nameOf(block.uri ?? "image"), mediaType: block.mimeType, base64: block.data });
        break;
      case "resource":
        attachments.push(attachedOf(block.resource));
        texts.push(`[${nameOf(block.resource.uri)}](${block.resource.uri})`);
        break;
      case "audio":
        throw unsupported("audio");
    }
  }
  const text = texts.join("\n");
  if (text === "" && attachments.length === 0) throw invalidParams("The prompt is empty.");
  return { text, ...(attachments.length === 0 ? {} : { data: { attachments: attachments as Json } }) };
}

const KNOWN: ReadonlySet<string> = new Set(["text", "resource_link", "image", "resource", "audio"]);

const isKnown = (block: ContentBlock | { readonly type: string }): block is ContentBlock => KNOWN.has(block.type);

function attachedOf(resource: Extract<ContentBlock, { type: "resource" }>["resource"]): Attached {
  const name = nameOf(resource.uri);
  if ("text" in resource) return { name, mediaType: resource.mimeType ?? "text/plain", text: resource.text };
  return { name, mediaType: resource.mimeType ?? "application/octet-stream", base64: resource.blob };
}

/** The last segment of a URI. */
const nameOf = (uri: string): string =>
  uri
    .split(/[\\/]/)
    .findLast((piece) => piece !== "")
    ?.slice(-200) ?? "file";

const unsupported = (type: string): Error =>
  invalidParams(
    `Content of type ${JSON.stringify(type.slice(0, 40))} is not supported.`,
    "Texts, links, embedded files and images are; see the answer to `initialize`.",
  );
