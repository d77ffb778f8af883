import { expect, test } from "vitest";
import { commandName } from "./command-name.ts";

const INSTALLED = "/srv/app/node_modules/agent-belay/dist/cli/shared";
const CLONE = "/srv/belay/src/cli/shared";

test.each([
  ["", INSTALLED, "belay"],
  ["npx", INSTALLED, "npx agent-belay"],
  ["start", INSTALLED, "npx agent-belay"],
  ["", CLONE, "belay"],
  ["npx", CLONE, "npx belay"],
  ["start", CLONE, "npm run belay --"],
  ["belay", CLONE, "npm run belay --"],
])("the script %j of %s continues with %s", (script, directory, name) => {
  expect(commandName(script, directory)).toBe(name);
});
