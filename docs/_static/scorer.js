// Sphinx's search: its own weights, and the page of changes after all others, because it names everything once.
var Scorer = {
  score: ([page, , , , score]) => (page === "CHANGELOG" ? score - 1000 : score),
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
