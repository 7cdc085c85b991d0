import { defineEnvironment, refuse } from "turnwright";
import { z } from "zod";

export default defineEnvironment({
  name: "library-desk",
  tasks: ["Dune", "Emil"].map((book) => ({ instruction: `I am Ann. Emma for ${book}.`, book })),
  initialState: () => ({ members: ["Ann", "Bo"], loans: new Map([["Emma", "Ann"]]) }),
  policy: "You are the desk of a library. Only members can have books, one at a time.",
  tools: {
    list_members: { description: "List all members.", execute: (_, desk) => desk.members },
    list_loans: { description: "List who has which book.", execute: (_, desk) => desk.loans },
    lend_book: {
      description: "Lend a book to a member.",
      parameters: z.object({ book: z.string(), member: z.string() }),
      execute: ({ book, member }, { loans, members }) =>
        members.includes(member) ? loans.set(book, member) : refuse(`${member} is no member`),
    },
    return_book: {
      description: "Take a book back.",
      parameters: z.object({ book: z.string() }),
      execute: ({ book }, { loans }) => loans.delete(book) || refuse(`nobody has ${book}`),
    },
  },
  score: (_, { book }) => ({ wanted: { loans: new Map([[book, "Ann"]]) } }),
});
