// `belay completion SHELL`: prints a completion script.
import { Argument, Command } from "commander";
import { act } from "../../shared/action.ts";
import { withExamples } from "../../shared/examples.ts";
import { EXIT_OK } from "../../shared/exit-code.ts";
import { print } from "../../shared/terminal/terminal.ts";

const SHELLS = ["bash", "zsh", "fish"] as const;

export function completionCommand(): Command {
  const command = new Command("completion").description("a script with which your shell completes commands and ids");
  command
    .addArgument(new Argument("<shell>", "bash, zsh or fish").choices(SHELLS))
    .action((shell: (typeof SHELLS)[number]) =>
      act(async () => {
        const { completionScript } = await import("./completion.ts");
        print(completionScript(command.parent ?? command, shell));
        return EXIT_OK;
      }),
    );
  return withExamples(command, [
    ["belay completion bash > ~/.local/share/bash-completion/completions/belay", "for bash, from the next shell on"],
    ["belay completion zsh > ~/.zfunc/_belay", "for zsh, if ~/.zfunc is in your fpath"],
    ["belay completion fish > ~/.config/fish/completions/belay.fish", "for fish"],
  ]);
}
