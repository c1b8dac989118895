package search

import "strings"

// synonymGroups are words that people use for each other when they speak of tools, each line a group.
// A word may be in several. Words are compared by their stems. Two words that make one name are
// written together: "pullrequest" stands for "pull request".
//
// What belongs here is what holds for tools of any kind. Words that mean the same in one product only
// don't.
const synonymGroups = `
create make new add insert
create open start begin
generate create produce draw render
delete remove erase destroy drop trash discard purge
delete cancel revoke
uninstall remove delete
list show get view display see enumerate
get fetch retrieve read load obtain
get download fetch
list browse
describe show inspect explain details
search find lookup query locate seek
update edit modify change alter patch revise
set change configure adjust
rename move
rm delete remove
mv move rename
cp copy
ls list
mkdir createdirectory makedirectory createfolder
write save store put
upload put push import
download export save
copy duplicate clone
send post submit deliver
compose write draft send
reply answer respond
publish release post
run execute invoke perform launch start
stop end halt abort terminate cancel kill
close finish complete resolve
restart reboot relaunch
merge combine join unite
split divide separate
convert transform change
count number total
sum add total
check verify validate test
compare diff difference
schedule plan book
book reserve reservation
buy purchase order
assign delegate allocate
approve accept confirm
reject decline deny
enable activate turnon switchon
disable deactivate turnoff switchoff
turn switch
mute silence
navigate goto visit open browse go
click press tap
type enter input
undo revert restore rollback
subscribe follow watch
mail email
message msg
folder directory dir
file document doc
document page article
image picture photo img graphic
audio sound voice speech
video clip movie
transcribe transcript transcription
website site page webpage web
url link address
issue ticket bug
task todo reminder
comment note remark
pr pullrequest mr mergerequest
repo repository
code source
commit change
ci pipeline workflow build
user member person account
contact person
customer client buyer
company organization organisation org
team group
event appointment meeting
calendar agenda schedule
available free
invoice bill
payment charge transaction
price cost fee
coupon discount voucher
money amount funds
db database
sql query statement
table relation
row record entry
column field property
k8s kubernetes
server host machine node
log logs logging
alert alarm warning
incident outage
dashboard board
metric measurement
config configuration setting settings option
env environment
auth authentication login signin
key token credential secret
info information detail metadata
chart graph plot diagram
slide presentation deck
spreadsheet sheet workbook excel
label tag
place location
route directions path
car vehicle
light lamp bulb
temperature heating
summarize summary condense
ocr recognize
`

// synonyms is a table of stems: for each, those that may stand for it.
type synonyms map[string][]string

func newSynonyms() synonyms {
	table := make(synonyms)
	for line := range strings.Lines(synonymGroups) {
		group := strings.Fields(line)
		for i, word := range group {
			group[i] = stem(word)
		}
		for _, word := range group {
			for _, other := range group {
				if word != other {
					table[word] = append(table[word], other)
				}
			}
		}
	}
	return table
}
