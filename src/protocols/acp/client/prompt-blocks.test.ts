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

test("an agent that takes everything is given everything as it is", () => {
  expect(promptBlocks(prompt, able({ image: true, embeddedContext: true }))).toEqual([
    { type: "text", text: "look" },
    { type: "resource", resource: { uri: "attachment:///a.txt", mimeType: "text/plain", text: "words" } },
    { type: "image", data: "AAAA", mimeType: "image/png" },
    { type: "resource", resource: { uri: "attachment:///c.zip", mimeType: "application/zip", blob: "AAAA" } },
  ]);
});

test("an agent that takes text only is told in text, also of what it cannot be shown", () => {
  expect(promptBlocks(prompt, able({}))).toEqual([
    { type: "text", text: "look" },
    { type: "text", text: "The file a.txt that came along:\nwords" },
    { type: "text", text: "[The file b.png (image/png, about 3 bytes) came along and cannot be shown to you.]" },
    { type: "text", text: "[The file c.zip (application/zip, about 3 bytes) came along and cannot be shown to you.]" },
  ]);
});

test("a prompt without words is what came along; one without anything is still a prompt", () => {
  expect(promptBlocks({ ...prompt, text: "" }, able({ image: true }))).toHaveLength(3);
  expect(promptBlocks({ text: "" }, able({}))).toEqual([{ type: "text", text: "" }]);
});
