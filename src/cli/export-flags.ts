import { type Command, InvalidArgumentError, Option } from "commander";
import { UsageError } from "../errors.ts";
import type { TeacherChoice } from "../export/teacher/teacher-export.ts";

/** The flags that choose a teacher's columns for an export. */
export interface TeacherFlags {
  readonly teacher?: string;
  readonly teacherTop?: true;
  readonly teacherWeight?: number;
}

/**
 * Adds the options of an export that concern a teacher.
 *
 * @param context - The text before each help.
 */
export function addTeacherOptions(command: Command, context: string): void {
  command
    .option(
      "--teacher <name>",
      `${context}also the logprobs of this teacher, which turnwright score added`,
    )
    .option(
      "--teacher-top",
      `${context}verl, trl, tinker: the teacher's most probable ids, in place of the logprobs`,
    )
    .addOption(
      new Option(
        "--teacher-weight <w>",
        `${context}tinker: the weight of the teacher in advantages (default: 1)`,
      ).argParser(toWeight),
    );
}

function toWeight(text: string): number {
  const weight = Number(text);
  if (text.trim() !== "" && weight >= 0 && Number.isFinite(weight)) return weight;
  throw new InvalidArgumentError("expected a number of at least 0");
}

/**
 * Reads the flags. Returns `undefined` without a teacher.
 *
 * @throws UsageError for a flag that needs a teacher.
 */
export function readTeacherChoice({
  teacher: name,
  teacherTop,
  teacherWeight: weight,
}: TeacherFlags): TeacherChoice | undefined {
  if (name !== undefined) {
    return {
      name,
      ...(teacherTop === true && { hasTop: true }),
      ...(weight !== undefined && { weight }),
    };
  }
  const flag = teacherTop === true ? "--teacher-top" : weight !== undefined && "--teacher-weight";
  if (flag === false) return undefined;
  throw new UsageError(
    `Cannot use ${flag} without --teacher NAME: it is about a teacher's columns`,
  );
}

/** Parses the value of `--turn-discount`. */
export function toDiscount(text: string): number {
  const discount = Number(text);
  if (text.trim() !== "" && discount >= 0 && discount <= 1) return discount;
  throw new InvalidArgumentError("expected a number from 0 to 1");
}
