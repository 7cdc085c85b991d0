import type { Command } from "commander";
import { UsageError } from "../../errors.ts";
import { writeError, writeOut } from "../write-out.ts";

interface ImportFlags {
  readonly from: string;
  readonly to: string;
}

interface PullFlags {
  readonly to: string;
  readonly url?: string;
}

/** `turnwright env import` and `env pull`: import a benchmark's data from its repository. */
export function addEnvImportCommands(env: Command): void {
  env
    .command("import")
    .summary("make a bundle of a benchmark's checkout")
    .description(
      "Reads a checkout of τ-bench as it is (its Python sources are read, never run) " +
        "and writes a bundle: tasks, tools, policies, databases, examples and prompts, " +
        "with a manifest of hashes. Prints one JSON line: what was imported.",
    )
    .argument("<benchmark>", "tau-bench")
    .requiredOption("--from <dir>", "a checkout of sierra-research/tau-bench")
    .requiredOption("--to <dir>", "the bundle's folder: absent, empty, or a bundle to replace")
    .action(importBundle);
  env
    .command("pull")
    .summary("download a benchmark's pinned commit and make a bundle of it")
    .description(
      "Downloads the pinned commit of τ-bench over HTTPS (through HTTPS_PROXY where " +
        "it is set), checks the SHA-256 of every file that is used, and imports it. " +
        "Start it again after a break. Prints one JSON line: what was imported.",
    )
    .argument("<benchmark>", "tau-bench")
    .option("--to <dir>", "the bundle's folder", "data/tau-bench")
    .option("--url <url>", "another place for the same archive (.tar.gz)")
    .action(pullBundle);
}

async function importBundle(benchmark: string, { from, to }: ImportFlags): Promise<void> {
  assertKnown(benchmark);
  const { importTauBench } =
    await import("../../../environments/tau-bench/import/import-bundle.ts");
  await writeOut(`${describeBundle(to, await importTauBench({ from, to }))}\n`);
}

async function pullBundle(benchmark: string, { to, url }: PullFlags): Promise<void> {
  assertKnown(benchmark);
  if (url !== undefined && !/^https?:\/\//.test(url)) {
    throw new UsageError(`Cannot download ${url}: expected an address that begins with https://`);
  }
  const { pullTauBench } = await import("../../../environments/tau-bench/import/pull-bundle.ts");
  const controller = new AbortController();
  process.once("SIGINT", () => controller.abort());
  let shownBytes = 0;
  try {
    const { manifest, isNew } = await pullTauBench({
      to,
      ...(url !== undefined && { url }),
      signal: controller.signal,
      onProgress: (received, total) => {
        if (received - shownBytes < progressBytes) return;
        shownBytes = received;
        const ofTotal = total === undefined ? "" : ` of ${megabytes(total)}`;
        writeError(`${megabytes(received)}${ofTotal} MB\n`);
      },
    });
    if (!isNew) writeError(`${to} is there already, unchanged\n`);
    await writeOut(`${describeBundle(to, manifest)}\n`);
  } catch (error) {
    if (!controller.signal.aborted) throw error;
    writeError("interrupted: start the same command again to continue\n");
    process.exitCode = 130;
  }
}

const progressBytes = 4 * 2 ** 20;

function megabytes(bytes: number): string {
  return (bytes / 2 ** 20).toFixed(0);
}

/**
 * Checks that a benchmark has bundles.
 * @throws UsageError if it has none.
 */
function assertKnown(benchmark: string): void {
  if (benchmark === "tau-bench") return;
  throw new UsageError(`Cannot import "${benchmark}": expected tau-bench`);
}

/** Describes a bundle as one JSON line. */
function describeBundle(
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
