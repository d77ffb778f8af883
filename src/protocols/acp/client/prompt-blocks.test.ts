import { expect, test } from "vitest";
import { readCapabilities } from "./capabilities.ts";
import { promptBlocks } from "./prompt-blocks.ts";

const attachments = [
  { name: "a.txt", mediaType: "text/plain", text: "words" },
  { name: "b.png", mediaType: "image/png", base64: "AAAA" },
  { name: "c.zip", mediaType: "application/zip", base64: "AAAA" },
];
const prompt = { text: "look", data: { attachments } };
const able = (promptCapabilities: object) => readCapabilities({ agentCapabilities: { promptCapabilities } });

test("an agent that supports everything gets the attachments unchanged", () => {
  expect(promptBlocks(prompt, able({ image: true, embeddedContext: true }))).toEqual([
    { type: "text", text: "look" },
    { type: "resource", resource: { uri: "attachment:///a.txt", mimeType: "text/plain", text: "words" } },
    { type: "image", data: "AAAA", mimeType: "image/png" },
    { type: "resource", resource: { uri: "attachment:///c.zip", mimeType: "application/zip", blob: "AAAA" } },
  ]);
});

test("an agent that supports only text gets text, and a remark for other attachments", () => {
  expect(promptBlocks(prompt, able({}))).toEqual([
    { type: "text", text: "look" },
    { type: "text", text: "The attached file a.txt:\nwords" },
    { type: "text", text: "[The file b.png (image/png, about 3 bytes) is attached and cannot be shown to you.]" },
    { type: "text", text: "[The file c.zip (application/zip, about 3 bytes) is attached and cannot be shown to you.]" },
  ]);
});

test("a prompt without text consists of its attachments; an empty prompt is still a prompt", () => {
  expect(promptBlocks({ ...prompt, text: "" }, able({ image: true }))).toHaveLength(3);
  expect(promptBlocks({ text: "" }, able({}))).toEqual([{ type: "text", text: "" }]);
});
