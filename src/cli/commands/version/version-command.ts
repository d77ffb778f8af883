// `belay version`: prints the version.
import { Command } from "commander";
import { version } from "../../../system/version.ts";
import { act } from "../../shared/action.ts";
import { withJson } from "../../shared/connection-options.ts";
import { EXIT_OK } from "../../shared/exit-code.ts";
import { print } from "../../shared/terminal/terminal.ts";

export function versionCommand(): Command {
  const command = new Command("version").description("which Belay this is").action((flags: { readonly json?: true }) =>
    act(async () => {
      const [belay, node] = [version(), process.versions.node];
      print(flags.json ? JSON.stringify({ version: belay, node }) : belay);
      return EXIT_OK;
    }),
  );
  return withJson(command);
}
