import type { TokenColumn } from "./side-columns.ts";

/** The columns of a teacher for one token. JSON-able. */
export interface TeacherToken {
  /** The teacher's name in the run's folder. */
  readonly name: string;
  /** The teacher's logprob of the token, in nats, at temperature 1. */
  readonly logprob: number;
  /** The teacher's most probable ids at the token's position. Absent if the teacher listed none. */
  readonly top?: TokenColumn & { readonly kind: "tokens" };
  /** True if the row has changed since the teacher scored it. */
  readonly isOutdated?: true;
}

/** Describes the difference between a teacher's logprob and the policy's. */
export function differenceWords(ofTeacher: number, ofPolicy: number): string {
  const difference = ofTeacher - ofPolicy;
  const nats = `${Math.abs(difference).toFixed(4)} nats`;
  if (Math.abs(difference) < 0.00005) return "as likely as for the policy";
  return difference > 0
    ? `${nats} likelier than for the policy`
    : `${nats} less likely than for the policy`;
}
