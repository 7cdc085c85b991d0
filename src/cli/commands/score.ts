import type { Command } from "commander";
import { createEngine } from "../../composition/create-engine.ts";
import { checkTeacherVocabulary } from "../../composition/check-teacher-vocabulary.ts";
import { completeSettings } from "../../composition/config/setting.ts";
import { readScoreConfig, scoreSettings } from "../../composition/config/teacher-config.ts";
import { createRunRedactor } from "../../composition/run-secrets.ts";
import { openStoredRun } from "../../report/read-run.ts";
import { requireRunRows } from "../../run/require-rows.ts";
import { openTeacher } from "../../teacher/open-teacher.ts";
import { scoreRun, type ScoringCounts, type ScoringResult } from "../../teacher/score-run.ts";
import type { TeacherRecord } from "../../teacher/teacher-record.ts";
import { isInterruption, stopOnInterrupt } from "../interrupt.ts";
import { addConfiguredSettings, givenSettings } from "../option.ts";
import { ownCommand } from "../own-command.ts";
import { hideSecrets, writeError, writeOut } from "../write-out.ts";
import { formatCount } from "../../text/format-count.ts";

/** Time between two lines of progress, in milliseconds. */
const terminalIntervalMs = 100;
const plainIntervalMs = 5_000;

interface ScoreFlags extends Readonly<Record<string, unknown>> {
  readonly json?: true;
}

/** `turnwright score`: adds a teacher's columns to the rows of a run. */
export function defineScore(command: Command): void {
  command
    .description(
      "A teacher, another model with the policy's vocabulary, computes the logprob of each token of each row, from the " +
        "prompt's end to the row's end, environment tokens included. Trainers that distil read them. With --top, the " +
        "most probable ids in each place are kept too.\n\n" +
        "Logprobs are those of the softmax at temperature 1, of all ids. The run's own files stay as they are: the " +
        "columns lie in teachers/ and columns/. The run may be played meanwhile. A call that was stopped continues where " +
        "it ended: rows that are scored are skipped, and rows that changed are scored again. Rows that cannot be scored, " +
        "such as those longer than the teacher's context, are named and left out; the exit status is 1 then.",
    )
    .option("--json", "print the result as JSON");
  addConfiguredSettings(command, scoreSettings);
  command.action(score);
}

async function score(dir: string, flags: ScoreFlags): Promise<void> {
  const given = await givenSettings(scoreSettings, flags);
  const config = readScoreConfig(completeSettings(scoreSettings, given));
  hideSecrets(createRunRedactor({ engine: config.engine }, process.env));
  const { manifest } = await openStoredRun(dir);
  requireRunRows(manifest.found, `score ${dir}`);
  const { modelDir } = config;
  const note = modelDir && (await checkTeacherVocabulary(manifest, modelDir));
  if (note !== undefined && note !== "") writeError(`note: ${note}\n`);
  const signal = stopOnInterrupt("stopping: scored rows are kept (Ctrl-C again to quit at once)");
  const engine = await createEngine(config.engine, process.env);
  try {
    const choice = { engine, topCount: config.topCount, name: config.name };
    await using teacher = await openTeacher(dir, choice, { signal, command: ownCommand() });
    const { contextLength } = teacher.description;
    const progress = createProgress();
    const result = await scoreRun(dir, {
      writer: teacher.writer,
      terms: teacher.terms,
      concurrency: config.concurrency,
      ...(contextLength !== undefined && { contextLength }),
      signal,
      onProgress: progress.show,
    }).finally(progress.end);
    const { record } = teacher.writer;
    await writeOut(
      flags.json === true
        ? `${JSON.stringify({ run: dir, teacher: record, ...result })}\n`
        : describeResult(dir, record, result),
    );
    if (result.leftOutCount + result.unreadableCount > 0) process.exitCode = 1;
  } catch (error) {
    if (!isInterruption(error)) throw error;
    process.exitCode = 130;
  } finally {
    await engine.close();
  }
}

/** Formats the result for people. */
function describeResult(dir: string, { name }: TeacherRecord, result: ScoringResult): string {
  const { leftOut, leftOutCount, unreadableCount } = result;
  const lines = [
    `${dir}: ${formatCount(result.scoredCount)} rows scored by ${name} (${formatCount(result.tokenCount)} tokens), ` +
      `${formatCount(result.knownCount)} were scored before`,
    ...leftOut.map(
      ({ rolloutId, segment, code, message }) =>
        `  left out: ${rolloutId}, row ${segment}: ${code}, ${message}`,
    ),
    ...(leftOutCount > leftOut.length
      ? [`  and ${formatCount(leftOutCount - leftOut.length)} more`]
      : []),
    ...(unreadableCount > 0
      ? [`  ${unreadableCount} lines are damaged: turnwright verify names them`]
      : []),
  ];
  return `${lines.join("\n")}\n`;
}

/** Shows counts: as one rewritten line on a terminal, otherwise as a line every few seconds. */
function createProgress(): { show: (counts: ScoringCounts) => void; end: () => void } {
  const isTerminal = process.stderr.isTTY;
  const interval = isTerminal ? terminalIntervalMs : plainIntervalMs;
  let shownAtMs = performance.now();
  let isShown = false;
  return {
    show({ scoredCount, knownCount, leftOutCount, tokenCount }) {
      const now = performance.now();
      if (now - shownAtMs < interval) return;
      shownAtMs = now;
      isShown = true;
      const text = `${scoredCount} rows scored (${formatCount(tokenCount)} tokens), ${knownCount} known, ${leftOutCount} left out`;
      writeError(isTerminal ? `\r\u001b[2K${text}` : `${text}\n`);
    },
    end: () => {
      if (isShown && isTerminal) writeError("\n");
    },
  };
}
