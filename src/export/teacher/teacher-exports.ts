import type { ExportTarget } from "../exporters.ts";
import { primeRlTeacher } from "./prime-rl-teacher.ts";
import { milesTeacher, slimeTeacher } from "./slime-teacher.ts";
import type { TeacherExport } from "./teacher-export.ts";
import { tinkerTeacher } from "./tinker-teacher.ts";
import { trlTeacher } from "./trl-teacher.ts";
import { verlTeacher } from "./verl-teacher.ts";

function none(why: string): TeacherExport {
  const rule = { action: "refuse", why } as const;
  return { logprobs: rule, top: rule };
}

const ownTeacher = none(
  "the trainer distils from a teacher that it computes itself, and overwrites or ignores other values",
);

const noField = none("the trainer has no field for the values of a teacher");

/** The forms of a teacher's columns, by trainer. */
export const teacherExports: Readonly<Record<ExportTarget, TeacherExport>> = {
  slime: slimeTeacher,
  miles: milesTeacher,
  trl: trlTeacher,
  verl: verlTeacher,
  skyrl: ownTeacher,
  openrlhf: noField,
  areal: ownTeacher,
  "prime-rl": primeRlTeacher,
  verifiers: none("only prime-rl reads the reference logprobs of its nodes: export to prime-rl"),
  "nemo-rl": ownTeacher,
  tinker: tinkerTeacher,
  art: noField,
};
