import type { Command } from "commander";
import { verifyFile } from "../../trajectory/verify-file.ts";

/** `turnwright verify`: checks files of samples against the invariants. */
export function addVerifyCommand(program: Command): void {
  program
    .command("verify")
    .summary("check samples against the token invariants")
    .description(
      "Checks samples.jsonl files: trained ids are the sampled ids, the mask follows from the turns,\n" +
        "logprobs and policy versions are aligned, each turn's request was the ledger, nothing is\n" +
        "trained twice. One JSON line a file; exit status 1 if anything is violated.",
    )
    .argument("<files...>", "samples.jsonl files")
    .action(async (files: readonly string[]) => {
      for (const file of files) {
        const result = await verifyFile(file);
        process.stdout.write(`${JSON.stringify(result)}\n`);
        if (result.violations.length > 0) process.exitCode = 1;
      }
    });
}
