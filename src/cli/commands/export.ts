import { once } from "node:events";
import path from "node:path";
import { type Command, InvalidArgumentError, Option } from "commander";
import { UsageError, describeError } from "../../errors.ts";
import { arraysFileOf } from "../../export/columns/column-sink.ts";
import type { ColumnSummary } from "../../export/columns/export-columns.ts";
import type { Exporter, ExportKind, ExportNote } from "../../export/exporter.ts";
import { exportRun } from "../../export/export-run.ts";
import {
  tableContent,
  tableTargets,
  writeShards,
  type TableTarget,
} from "../../export/export-table.ts";
import { exporters, type ExportTarget } from "../../export/exporters.ts";
import { sayNote } from "../../export/say-note.ts";
import { withoutUndefined } from "../../values/without-undefined.ts";
import { makeFolder } from "../../files/make-folder.ts";
import type { Setting } from "../../composition/config/setting.ts";
import { writeAtomically } from "../../run/disk/write-atomically.ts";
import { addSettings } from "../option.ts";
import {
  addTeacherOptions,
  readTeacherChoice,
  toDiscount,
  type TeacherFlags,
} from "../export-flags.ts";
import { writeError } from "../write-out.ts";

interface ExportFlags extends TeacherFlags {
  readonly to: ExportTarget | TableTarget;
  readonly out?: string;
  readonly policyVersion?: number;
  readonly promptText?: string;
  readonly temperature?: number;
  readonly turnDiscount?: number;
  readonly turnRewards?: true;
}

const temperatureSetting: Setting = {
  name: "temperature",
  kind: { type: "number", min: 0, max: 100 },
  value: "t",
  help: "prime-rl: the temperature at which the run sampled (default: what its run.json says)",
};

/** Maximum number of notes of one kind that are printed individually. */
const shownNotes = 10;

/** `turnwright export`: writes a run's rows in a trainer's form. */
export function defineExport(command: Command): void {
  command
    .description(
      "Writes the training rows of a run as a trainer reads them, aligned as it expects. What the " +
        "trainer would misread is left out or cut, and standard error says so; docs/trainers.md has " +
        "the rules. One group at a time is in memory.\n\n" +
        "parquet and safetensors have the rows of samples.jsonl as they are, csv a line for each episode.",
    )
    .addOption(
      new Option("--to <name>", "the trainer, or a kind of file")
        .choices([...Object.keys(exporters), ...tableTargets])
        .makeOptionMandatory(),
    )
    .option("--out <file>", "the file to write, with its folder (default: standard output)")
    .addOption(
      new Option(
        "--policy-version <n>",
        "the policy's version where the engine named none, for trainers that count versions",
      ).argParser(toVersion),
    )
    .addOption(
      new Option(
        "--turn-discount <g>",
        "prime-rl, tinker: advantages of turns, with this weight of a reward one turn later, from 0 to 1",
      ).argParser(toDiscount),
    )
    .option("--turn-rewards", "skyrl: a reward for each token, with the rewards of turns")
    .option(
      "--prompt-text <model>",
      "slime, miles: prompts as the text that the policy was sent, by this folder's tokenizer",
    );
  addTeacherOptions(command, "");
  addSettings(command, [temperatureSetting]);
  command.action(exportCommand);
}

function toVersion(text: string): number {
  if (/^\d{1,15}$/.test(text)) return Number(text);
  throw new InvalidArgumentError("expected a whole number");
}

async function exportCommand(dir: string, flags: ExportFlags): Promise<void> {
  const { to, out, temperature, promptText, turnDiscount } = flags;
  if (temperature !== undefined && to !== "prime-rl") {
    throw new UsageError(
      `Cannot use --temperature with --to ${to}: only prime-rl's rows have the temperature`,
    );
  }
  const exporter: Exporter | undefined = exporters[to as ExportTarget];
  if (promptText !== undefined && exporter?.hasPromptText !== true) {
    throw new UsageError(
      `Cannot use --prompt-text with --to ${to}: only rows for slime and miles have the prompt`,
    );
  }
  if (turnDiscount !== undefined && exporter?.hasTurnAdvantages !== true) {
    throw new UsageError(
      `Cannot use --turn-discount with --to ${to}: only rows for prime-rl and tinker have an advantage for each token`,
    );
  }
  if (flags.turnRewards === true && exporter?.takesTurnRewards !== true) {
    throw new UsageError(
      `Cannot use --turn-rewards with --to ${to}: only rows for skyrl have a reward for each token`,
    );
  }
  const choice = readTeacherChoice(flags);
  if (choice !== undefined && exporter === undefined) {
    throw new UsageError(
      `Cannot use --teacher with --to ${to}: only trainers' forms have a teacher's columns; read those of the folder by ` +
        "turnwright.columns in Python",
    );
  }
  if (to === "safetensors") {
    if (out === undefined)
      throw new UsageError("Cannot export safetensors: name a folder by --out");
    const { shards } = await writeShards(dir, out);
    const count = shards.reduce((sum, { rowCount }) => sum + rowCount, 0);
    writeError(`${count} rows in ${shards.length} shards\n`);
  } else if (to === "parquet" || to === "csv") {
    await writeContent(tableContent(dir, to), out);
  } else {
    await exportToTrainer(dir, to, flags);
  }
}

async function exportToTrainer(dir: string, to: ExportTarget, flags: ExportFlags): Promise<void> {
  const { out, policyVersion, promptText, temperature, turnDiscount, turnRewards } = flags;
  const choice = readTeacherChoice(flags);
  const { loadTokenCodec } = await import("../../tokenizer/load-codec.ts");
  const codec = promptText === undefined ? undefined : await loadTokenCodec(promptText);

  const counts = new Map<ExportKind, number>();
  const onNote = (note: ExportNote): void => {
    const count = (counts.get(note.kind) ?? 0) + 1;
    counts.set(note.kind, count);
    if (count <= shownNotes) writeError(`${sayNote(note, to)}\n`);
  };
  const { content, summary } = await exportRun(dir, to, {
    onNote,
    ...(out !== undefined && { file: out }),
    ...(choice && { teacher: choice }),
    ...(codec && { spell: async (ids) => await codec.decode(ids) }),
    ...withoutUndefined({ policyVersion, temperature, turnDiscount, hasTurnRewards: turnRewards }),
    versionRemedy: "--policy-version N",
    temperatureRemedy: "--temperature T",
  });
  try {
    await writeContent(content, out);
  } finally {
    await codec?.close?.();
  }
  for (const [kind, count] of counts) {
    if (count <= shownNotes) continue;
    writeError(`${count - shownNotes} more like that: ${exporters[to].rules[kind].why}\n`);
  }
  const { groups, records, leftOut, columns, teacher } = summary();
  if (leftOut !== undefined) {
    const { rowCount, tokenCount } = leftOut;
    writeError(
      `${to} takes one row an attempt: ${rowCount} rows with ${tokenCount} sampled tokens stay out\n`,
    );
  }
  if (columns !== undefined) writeError(sayColumns(columns, to, out));
  if (teacher !== undefined) {
    writeError(`The columns of ${teacher.name} for ${teacher.rowCount} rows\n`);
  }
  writeError(`${records} rows of ${groups} groups for ${to}\n`);
}

/** Describes the side columns of an export, one line each. */
function sayColumns(
  { rowCount, byteCount, mixedRowCount, leftOut }: ColumnSummary,
  to: ExportTarget,
  out: string | undefined,
): string {
  const lines = leftOut.map(
    (name) => `Left out ${name} of all rows: ${exporters[to].columns.rules[name].why}`,
  );
  if (mixedRowCount > 0) {
    lines.push(
      `${mixedRowCount} rows have columns of several policy versions: the first computed ones`,
    );
  }
  if (byteCount !== undefined) {
    lines.push(`Side columns of ${rowCount} rows: ${byteCount} bytes in ${arraysFileOf(out!)}`);
  } else if (rowCount > 0) lines.push(`Side columns of ${rowCount} rows, within the rows`);
  return lines.map((line) => `${line}\n`).join("");
}

async function writeContent(
  content: AsyncIterable<Uint8Array>,
  out: string | undefined,
): Promise<void> {
  if (out !== undefined) {
    await makeFolder(path.dirname(path.resolve(out))).catch((error: unknown) => {
      throw new UsageError(
        `Cannot write ${out}: its folder cannot be made (${describeError(error)}); choose another --out`,
        { cause: error },
      );
    });
    await writeAtomically(out, content);
    return;
  }
  for await (const bytes of content) {
    // Writes bytes, because a block may end within a character.
    if (!process.stdout.write(bytes)) await once(process.stdout, "drain");
  }
}
