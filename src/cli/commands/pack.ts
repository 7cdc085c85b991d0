import path from "node:path";
import type { Command } from "commander";
import { packRun, type RepackedFile, unpackRun } from "../../run/gzip/pack-run.ts";
import { writeOut } from "../write-out.ts";

interface PackFlags {
  readonly json?: boolean;
}

const jsonHelp = "print a line of JSON for each run";

/** `turnwright pack`: compresses the files of runs. */
export function definePack(command: Command): void {
  command
    .description(
      "Compresses the large files of runs in place: samples.jsonl becomes samples.jsonl.gz. All commands " +
        "read a packed run as before, and so do readRun() and the Python package; `zgrep` and `zcat` read its " +
        "files. Only a start that continues the run needs `turnwright unpack` first.\n\n" +
        "Each packed file is compared with its original before the original is removed. A call that was " +
        "killed loses nothing: call it again. A run that another process writes is refused.",
    )
    .option("--json", jsonHelp)
    .action(eachWith(packRun));
}

/** `turnwright unpack`: restores the files of packed runs. */
export function defineUnpack(command: Command): void {
  command
    .description(
      "Restores the files that `turnwright pack` compressed, byte for byte. A call that was killed loses " +
        "nothing: call it again. A run that another process writes is refused.",
    )
    .option("--json", jsonHelp)
    .action(eachWith(unpackRun));
}

/** Returns the action of a command that calls a function for each run, and prints the files. */
function eachWith(repack: (run: string) => Promise<readonly RepackedFile[]>) {
  return async (runs: readonly string[], flags: PackFlags): Promise<void> => {
    for (const run of runs) await print(run, await repack(run), flags);
  };
}

async function print(
  run: string,
  files: readonly RepackedFile[],
  { json = false }: PackFlags,
): Promise<void> {
  await writeOut(json ? `${JSON.stringify({ run, files })}\n` : tableOf(run, files));
}

/** Returns a line for each file, with its sizes. */
function tableOf(run: string, files: readonly RepackedFile[]): string {
  if (files.length === 0) return `${run}: no file is packed\n`;
  const sum = (sizes: readonly number[]): number => sizes.reduce((total, size) => total + size, 0);
  const all = {
    name: "all",
    unpackedSize: sum(files.map(({ unpackedSize }) => unpackedSize)),
    packedSize: sum(files.map(({ packedSize }) => packedSize)),
  };
  const lines = [...files, ...(files.length > 1 ? [all] : [])].map((file) => {
    const { name, unpackedSize, packedSize } = file;
    const place = file === all ? run : path.join(run, name);
    return `${place}: ${megabytes(unpackedSize)} MB, packed ${megabytes(packedSize)} MB\n`;
  });
  return lines.join("");
}

function megabytes(size: number): string {
  return (size / 1e6).toFixed(1);
}
