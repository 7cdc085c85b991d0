import { commandLine } from "../run/disk/command-line.ts";

/**
 * This command with its flags: what others are told of the process that holds a run's folder. No flag takes a key;
 * those of addresses are taken out.
 */
export function ownCommand(): string {
  return commandLine(["", "turnwright", ...process.argv.slice(2)]);
}
