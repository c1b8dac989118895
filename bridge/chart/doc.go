// Package chart draws charts: from columns of numbers to a PNG that can be shown as it is.
//
// It knows nothing of scripts or servers. The operation chart.render of package bridge calls it.
//
// What it draws comes from code that nobody has vouched for. [Chart.Check] therefore bounds everything that
// costs time or memory, and [Render] draws nothing that has not passed it: the largest chart takes some 50 MB and
// a few seconds, one of the usual size a tenth of a second.
//
// # Why gonum.org/v1/plot
//
// Three libraries were compared by the same six charts, which are in testdata/compared. go-analyze/charts looks best as it comes, but its
// axes know only categories: a scatter plot has no numeric x, dates are spread evenly, and an area with a gap
// is filled across it. go-chart needs the least code, but can't draw a gap, groups of bars, or bars below
// zero, and has had no release since August 2024. gonum/plot gets all of this right, is kept by the Gonum project
// under a BSD licence, and brings fonts with Latin, Greek, Cyrillic and Hebrew letters. As it comes it looks like
// a paper of 1995, has no pies, and puts a writer of PDF and ten unused fonts into the program. So we use the half
// that draws (its packages vg, draw, text and font: canvas, outlines, measured and turned text); the axes, the
// legend and the shapes on it are ours.
//
// # Why 144 dots per inch
//
// A chart of 10 by 6 inches is 1440 by 864 pixels: sharp on today's screens, and below the 1568 pixels to which
// the models that look at pictures scale them.
//
// # Why areas aren't stacked
//
// A stack says that the values add up, and can't show negative ones. Areas lie over each other, and are
// translucent.
//
// # Why points are stamped, lines cut and areas painted by hand
//
// The library's rasteriser takes 40 µs for each outline, and keeps the edges of an outline in a list for each row of
// pixels: its time grows with the square of the number of edges that cross a row. One line through 100,000
// points of noise took two and a half minutes. So all points of a series are copies of one; of a line with more points
// than the picture has columns only the first, lowest, highest and last of each column are drawn, in pieces of
// sixteen; and an area is painted column by column.
package chart
