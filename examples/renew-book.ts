import { defineTool, refuse } from "turnwright";
import { z } from "zod";

/** The part of the state that the tool needs. The tool fits every environment with such a state. */
export interface Loans {
  readonly loans: Map<string, { member: string; renewals: number }>;
}

export const renewBook = defineTool({
  name: "renew_book",
  description: "Renew a loan, twice at most.",
  parameters: z.object({ book: z.string().describe("its title") }),
  execute({ book }, { loans }: Loans) {
    const loan = loans.get(book) ?? refuse(`nobody has ${book}`);
    if (loan.renewals === 2) refuse("it was renewed twice");
    loan.renewals += 1;
    return { book, renewals: loan.renewals };
  },
});
