// Converts a prompt to content blocks that the agent supports. Pure.
import type { ContentBlock } from "@agentclientprotocol/sdk";
import { type Attachment, attachmentsOf } from "../../../agent/attachment.ts";
import type { Prompt } from "../../../core/model/prompt.ts";
import type { Capabilities } from "./capabilities.ts";

export const textBlock = (text: string): ContentBlock => ({ type: "text", text });

/** A prompt with its attachments. Unsupported ones are replaced by a text. */
export function promptBlocks({ text, data }: Prompt, capabilities: Capabilities): readonly ContentBlock[] {
  const attached = attachmentsOf(data).map((one) => attachedBlock(one, capabilities));
  // A prompt may consist of pictures only.
  return text === "" && attached.length > 0 ? attached : [textBlock(text), ...attached];
}

function attachedBlock(given: Attachment, { images, embedded }: Capabilities): ContentBlock {
  const { name, mediaType } = given;
  const uri = `attachment:///${encodeURIComponent(name)}`;
  if ("base64" in given) {
    if (images && mediaType.startsWith("image/")) return { type: "image", data: given.base64, mimeType: mediaType };
    if (embedded) return { type: "resource", resource: { uri, mimeType: mediaType, blob: given.base64 } };
    const bytes = Math.floor((given.base64.length * 3) / 4);
    return textBlock(`[The file ${name} (${mediaType}, about ${bytes} bytes) is attached and cannot be shown to you.]`);
  }
  if (embedded) return { type: "resource", resource: { uri, mimeType: mediaType, text: given.text } };
  return textBlock(`The attached file ${name}:\n${given.text}`);
}
