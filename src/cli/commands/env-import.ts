import type { Command } from "commander";
import { UsageError } from "../../errors.ts";
import { writeOut } from "../write-out.ts";

interface ImportFlags {
  readonly from: string;
  readonly to: string;
}

/** `turnwright env import`: data of a benchmark, from its own checkout. */
export function addEnvImportCommand(env: Command): void {
  env
    .command("import")
    .summary("make a bundle of a benchmark's checkout")
    .description(
      "Reads a checkout of τ-bench as it is (its Python sources are read, never run) and writes a\n" +
        "bundle: tasks, tools, policies, databases, examples and prompts, with a manifest of hashes.\n" +
        "Prints one JSON line: what was imported.",
    )
    .argument("<benchmark>", "tau-bench")
    .requiredOption("--from <dir>", "a checkout of sierra-research/tau-bench")
    .requiredOption("--to <dir>", "the bundle's folder: absent, empty, or a bundle to replace")
    .action(importBundle);
}

async function importBundle(benchmark: string, { from, to }: ImportFlags): Promise<void> {
  assertKnown(benchmark);
  const { importTauBench } =
    await import("../../../environments/tau-bench/import/import-bundle.ts");
  await writeOut(`${describeBundle(to, await importTauBench({ from, to }))}\n`);
}

/** @throws UsageError for a benchmark that has no bundles. */
export function assertKnown(benchmark: string): void {
  if (benchmark === "tau-bench") return;
  throw new UsageError(`Cannot import "${benchmark}": expected tau-bench`);
}

/** What a bundle holds, as one JSON line. */
export function describeBundle(
  to: string,
  manifest: {
    readonly source: string;
    readonly commit: string | null;
    readonly license: string;
    readonly files: Readonly<Record<string, string>>;
  },
): string {
  const { source, commit, license, files } = manifest;
  return JSON.stringify({ bundle: to, source, commit, license, files: Object.keys(files).length });
}
