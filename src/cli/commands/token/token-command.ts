// `belay token`: its options.
import { Command } from "commander";
import { act } from "../../shared/action.ts";
import { collected, withJson } from "../../shared/connection-options.ts";
import { withExamples } from "../../shared/examples.ts";

const HOME = ["--home <dir>", "where Belay keeps its things (else BELAY_HOME)"] as const;

export function tokenCommand(): Command {
  const command = new Command("token").description("who may ask this home's server for what");
  for (const one of [list(), add(), rotate(), revoke(), show()]) command.addCommand(withJson(one.option(...HOME)));
  return withExamples(command, [
    ["belay token list", "names, scopes and dates; never a secret"],
    ["belay token add ci --scope prompt --scope read --expires 30d", "prints the new token, once"],
    ["belay token add watch --scope read --tenant acme", "sees only the sessions of one tenant"],
    ["belay token rotate ci --grace 1h", "a new secret; the old one stays valid for an hour"],
    ["belay token revoke ci", "ends it at once, also in a running server"],
    ["belay token show", "the token of your own command line"],
  ]);
}

const list = (): Command =>
  new Command("list")
    .description("all tokens, without their secrets")
    .action((flags) => act(async () => (await import("./token.ts")).listTokens(flags)));

const add = (): Command =>
  new Command("add")
    .description("makes a token and prints it, once")
    .argument("<name>", "what the audit trail calls it")
    .requiredOption(
      "--scope <scope>",
      "what it may do: read, prompt, cancel, approve, admin (all of it); several with commas, or several times",
      collected,
    )
    .option("--tenant <name>", "only sessions of this tenant; without it, the whole server")
    .option("--expires <span>", "ends by itself: 90m, 12h, 30d")
    .action((name, flags) => act(async () => (await import("./token.ts")).addToken(name, flags)));

const rotate = (): Command =>
  new Command("rotate")
    .description("a new secret for the same name")
    .argument("<name>", "as `belay token list` has it")
    .option("--grace <span>", "how long the old one stays valid: 90m, 12h, 7d. Default: it ends at once")
    .action((name, flags) => act(async () => (await import("./token.ts")).rotateToken(name, flags)));

const revoke = (): Command =>
  new Command("revoke")
    .description("ends a token at once")
    .argument("<name>", "as `belay token list` has it")
    .action((name, flags) => act(async () => (await import("./token.ts")).revokeToken(name, flags)));

const show = (): Command =>
  new Command("show")
    .description("the token of your own command line")
    .option("--plain", "also where stdout is no terminal")
    .action((flags) => act(async () => (await import("./token.ts")).showToken(flags)));
