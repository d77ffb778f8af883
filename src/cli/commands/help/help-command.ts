// `belay help [COMMAND]`: prints the help of the program or of one command.
import { Command } from "commander";
import { act } from "../../shared/action.ts";
import { EXIT_OK } from "../../shared/exit-code.ts";
import { unknownCommand } from "../../shared/usage-error.ts";

export function helpCommand(): Command {
  const command = new Command("help").description("what there is, or all about one command");
  return command.argument("[command]", "its name").action((name: string | undefined) =>
    act(async () => {
      const program = command.parent ?? command;
      const found = name === undefined ? program : program.commands.find((one) => one.name() === name);
      if (found === undefined) throw unknownCommand(program, name ?? "");
      found.outputHelp();
      return EXIT_OK;
    }),
  );
}
