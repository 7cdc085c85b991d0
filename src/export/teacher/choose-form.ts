import { UsageError } from "../../errors.ts";
import type { ExportTarget } from "../exporters.ts";
import { teacherExports } from "./teacher-exports.ts";
import type { TeacherChoice, TeacherForm } from "./teacher-export.ts";

/**
 * Returns the form of a teacher's columns for a trainer.
 *
 * @throws UsageError if the trainer has none.
 */
export function chooseForm(to: ExportTarget, { hasTop, weight }: TeacherChoice): TeacherForm {
  const { logprobs, top } = teacherExports[to];
  const form = hasTop === true ? top : logprobs;
  if (form.action === "refuse") {
    throw new UsageError(
      `Cannot export to ${to} with a teacher's ${hasTop === true ? "most probable ids" : "logprobs"}: ${form.why}; ` +
        remedyOf(to, hasTop === true),
    );
  }
  if (weight !== undefined && form.hasWeight !== true) {
    throw new UsageError(
      `Cannot use a teacher's weight with ${to}: its own setting has the weight of the teacher; only tinker's ` +
        "advantages contain it",
    );
  }
  return form;
}

function remedyOf(to: ExportTarget, hasTop: boolean): string {
  const { logprobs, top } = teacherExports[to];
  if (hasTop && logprobs.action === "export") return "leave out --teacher-top";
  if (!hasTop && top.action === "export") return "add --teacher-top";
  const others = Object.entries(teacherExports)
    .filter(([, forms]) => (hasTop ? forms.top : forms.logprobs).action === "export")
    .map(([name]) => name);
  return `use a trainer that takes them (${others.join(", ")}), or leave out --teacher`;
}
