"""Words of the prompt grammar, by class, and how English inflects them."""

from __future__ import annotations

NOUNS: dict[str, str] = {
    "person": "man woman boy girl friend neighbor teacher doctor nurse lawyer driver farmer student boss cousin "
    "uncle aunt brother sister son daughter mother father grandmother grandfather husband baby kid "
    "roommate partner coach player singer writer artist actor cook waiter manager worker engineer soldier "
    "officer judge customer guest stranger visitor neighbor nephew niece dentist plumber painter mechanic",
    "animal": "dog cat horse bird cow pig duck rabbit snake bear squirrel turtle puppy kitten goat chicken",
    "food": "apple orange banana sandwich cookie pie cake potato tomato egg burger pizza salad carrot onion pepper "
    "pancake steak muffin pickle peach cherry lemon melon",
    "dish": "soup bread rice cheese butter coffee tea milk water juice beer wine fish chicken meat pasta chocolate "
    "sugar salt ice popcorn corn garlic honey breakfast lunch dinner",
    "place": "house store park school office hospital church bank library restaurant kitchen garden beach city town "
    "farm airport station hotel museum market bedroom bathroom garage basement yard street neighborhood "
    "pool lake river mountain island village apartment building factory college theater gym bakery "
    "pharmacy playground campground bridge",
    "thing": "car truck bike boat bus train phone computer radio camera table chair couch bed lamp clock window "
    "door box bag book letter picture ticket key coat shirt jacket hat shoe sock sweater dress bottle cup "
    "plate bowl knife fork spoon pan oven fridge mirror blanket pillow towel candle ladder hammer rope "
    "tool basket umbrella wallet watch ring guitar piano drum ball glove tent map pen pencil notebook "
    "magazine newspaper battery engine tire wheel bill check package suitcase toy",
    "event": "party wedding meeting game trip movie concert class lesson show race vacation holiday birthday "
    "interview appointment test storm picnic parade funeral election festival contest",
    "idea": "problem question answer story reason idea plan chance choice mistake habit rule law secret joke dream "
    "memory opinion decision difference example situation experience feeling promise argument excuse",
    "subject": "music football baseball basketball soccer golf tennis politics history science math art weather "
    "cooking gardening fishing camping hunting traffic crime education insurance religion health "
    "business money work television news sleep exercise",
    "job": "job company business bank team project program budget contract career salary schedule system network",
    "nature": "sun moon star sky cloud rain snow wind storm tree leaf flower grass hill valley field forest ocean "
    "wave stone sand fire smoke fog shadow",
    "body": "hand arm leg foot head face eye ear nose mouth back neck knee shoulder finger heart stomach tooth",
    "public": "government president mayor senator committee council agency court police army union hospital "
    "industry university department congress governor minister reporter expert scientist researcher "
    "official economist",
    "issue": "policy report tax price market economy election campaign investigation agreement law bill decision "
    "crisis study proposal deal treaty lawsuit speech reform protest debate recovery trade climate energy",
    "time": "day week month year weekend morning evening night afternoon summer winter spring season minute hour while",
}

VERBS: dict[str, str] = {
    "consume": "eat cook make buy order taste share bring finish love want like",
    "handle": "buy sell fix need use lose find carry drop break move hide borrow clean paint open close pack return "
    "throw hold leave bring keep take want",
    "go": "go drive walk move run ride fly travel hurry get",
    "do": "work sleep sing dance cry laugh smoke swim read cook fish talk wait rest worry complain exercise leave stay",
    "meet": "call see know miss meet visit help thank trust remember marry believe understand follow invite teach "
    "pay forgive hear ask tell like love",
    "attend": "watch enjoy miss plan remember attend skip leave hate cancel like",
    "think": "think know believe guess hope feel say hear remember suppose",
    "mind": "understand explain forget discuss hear mention remember change consider ignore face share",
    "raise": "raise feed walk train keep chase want like love",
    "begin": "start stop keep like love hate",
    "plan": "want need try hope plan like love decide forget expect",
    "govern": "announce approve reject support oppose delay review discuss propose criticize defend question change "
    "consider block",
    "natural": "rise fall move turn shine fade spread drift settle grow melt burn",
    "press": "lift push pull press stack fold hang wipe tie cut mix pour fill spread roll shake wrap load grab drag",
}

ADJECTIVES: dict[str, str] = {
    "size": "big small little large huge tiny tall short long wide narrow heavy",
    "good": "good great nice beautiful perfect wonderful amazing lovely fine cool pretty fantastic",
    "bad": "bad terrible awful ugly horrible boring",
    "look": "old new young red blue green yellow black white brown gray bright dark clean dirty round flat soft "
    "hard sharp smooth rough wet dry warm cold hot fresh cheap expensive broken empty full wooden plastic "
    "fancy plain simple sweet strong weak quiet loud quick slow busy thick thin",
    "feel": "happy sad tired hungry angry sick sorry afraid sure ready busy excited nervous proud lonely glad upset "
    "bored worried healthy lucky careful lazy confused surprised jealous thirsty sleepy",
    "fact": "easy difficult important possible strange funny true interesting different dangerous crazy common fair "
    "free wrong right clear safe serious useful special typical unusual necessary",
    "formal": "federal local national foreign public private economic political military financial legal recent "
    "major new former medical global controversial",
}

ADVERBS: dict[str, str] = {
    "often": "always never usually sometimes often probably really still just already hardly ever rarely actually",
    "how": "slowly quickly quietly carefully together alone again early late well hard outside inside tomorrow "
    "today downtown yesterday everywhere upstairs finally",
    "degree": "very really so pretty too quite kind sort somewhat extremely",
    "formal": "recently quickly sharply formally strongly publicly quietly slowly reportedly officially",
}

NAMES = (
    "john mary bob susan david karen mike linda tom nancy steve carol jim lisa paul betty mark helen george sandra "
    "frank donna peter ruth jack alice ben emma sam kate joe anna luke sara adam julia henry laura"
)
CITIES = (
    "texas boston dallas chicago denver atlanta florida california houston ohio seattle virginia london paris "
    "canada mexico"
)
NUMBERS = (
    "two three four five six seven eight nine ten eleven twelve fifteen sixteen eighteen twenty thirty forty fifty "
    "sixty seventy eighty ninety"
)
DAYS = "monday tuesday wednesday thursday friday saturday sunday"
MONTHS = "january february march april may june july august september october november december"

_IRREGULAR = (
    "eat/ate/eaten make/made/made buy/bought/bought bring/brought/brought sell/sold/sold lose/lost/lost "
    "find/found/found break/broke/broken hide/hid/hidden throw/threw/thrown hold/held/held leave/left/left "
    "keep/kept/kept take/took/taken go/went/gone drive/drove/driven run/ran/run ride/rode/ridden fly/flew/flown "
    "get/got/gotten sleep/slept/slept sing/sang/sung swim/swam/swum read/read/read see/saw/seen know/knew/known "
    "meet/met/met understand/understood/understood teach/taught/taught pay/paid/paid forgive/forgave/forgiven "
    "hear/heard/heard tell/told/told think/thought/thought feel/felt/felt say/said/said forget/forgot/forgotten "
    "feed/fed/fed rise/rose/risen fall/fell/fallen shine/shone/shone spread/spread/spread grow/grew/grown "
    "hang/hung/hung cut/cut/cut shake/shook/shaken have/had/had do/did/done be/was/been"
)
_PAST = {verb: (past, done) for verb, past, done in (entry.split("/") for entry in _IRREGULAR.split())}
_DOUBLED = frozenset(("stop", "plan", "drop", "skip", "drag", "grab", "hug", "wrap", "forget", "get", "run", "swim"))
_PLURALS = {
    "man": "men",
    "woman": "women",
    "child": "children",
    "foot": "feet",
    "tooth": "teeth",
    "leaf": "leaves",
    "knife": "knives",
    "potato": "potatoes",
    "tomato": "tomatoes",
}


def _with_s(word: str) -> str:
    if word.endswith(("s", "x", "z", "ch", "sh")):
        return word + "es"
    if word.endswith("y") and word[-2] not in "aeiou":
        return word[:-1] + "ies"
    return word + ("es" if word in ("go", "do") else "s")


def _stem(verb: str, vowel: str) -> str:
    if verb in _DOUBLED:
        return verb + verb[-1]
    if verb.endswith("e") and not verb.endswith(("ee", "ie")) and verb != "be":
        return verb[:-1]
    if verb.endswith("ie"):
        return verb[:-2] + "y" if vowel == "i" else verb[:-1]
    if vowel == "e" and verb.endswith("y") and verb[-2] not in "aeiou":
        return verb[:-1] + "i"
    return verb


def plural(noun: str) -> str:
    """Plural of a noun.

    Examples
    --------
    >>> plural("knife"), plural("city"), plural("box")
    ('knives', 'cities', 'boxes')
    """
    return _PLURALS.get(noun) or _with_s(noun)


def inflect(verb: str, form: str) -> str:
    """One form of a verb.

    Parameters
    ----------
    verb
        Base form.
    form
        ``"base"``, ``"s"``, ``"past"``, ``"ing"`` or ``"done"`` (past participle).

    Raises
    ------
    KeyError
        If there is no such form.

    Examples
    --------
    >>> [inflect("carry", form) for form in ("base", "s", "past", "ing", "done")]
    ['carry', 'carries', 'carried', 'carrying', 'carried']
    >>> inflect("stop", "past"), inflect("tie", "ing"), inflect("take", "done")
    ('stopped', 'tying', 'taken')
    """
    regular = _stem(verb, "e") + "ed"
    past, done = _PAST.get(verb, (regular, regular))
    forms = {"base": verb, "s": _with_s(verb), "past": past, "ing": _stem(verb, "i") + "ing", "done": done}
    return forms[form]
