// Package e2e tests the shop from outside: as a process that is started,
// talked to over HTTP, killed and started again. It sees HTTP, SQL and Stripe's
// API, and none of the shop's code, so that a guarantee holds here only if a
// customer and a bank statement would say the same.
//
// Each test has a deployment of its own: a database, a local Stripe, and one
// shop or several on them. When the test ends the deployment's invariants are
// checked, whatever the test was about, and every process must be gone.
//
// # What broke in other people's checkouts
//
// The kinds of fault that were reported in public for other checkouts, with one
// report as an example, and the tests that are about the kind. Reports of one
// kind stand together, so that numbers are missing. Each test is named by its
// package; a part after the slash is a subtest.
//
//	 1  Two tabs with a key each pay one order, and both are charged; the clash
//	    shows only when the second result is saved. mollie/PrestaShop#1251
//	    - checkout TestPay/TwoKeysOneOrderIsOneConfirm
//	    - checkout TestAction/AnotherCardIsRefusedUntilCanceledAndThenChargesOnce
//	    - e2e TestTwoKeysOneOrder/WhileTheFirstIsWithStripe
//	    - e2e TestReplyLost/SameKeyAfterRetryAfterIsAnsweredAndChargedOnce
//	 3  The buyer hangs up between charge and record, and the record is canceled
//	    with the request. fullstackhero/dotnet-starter-kit#1333
//	    - checkout TestPay/HangUpAfterTheClaimChangesNothing
//	    - idempotency TestCommitInDoubt/HangUpDuringCommitChangesNothing
//	    - e2e TestHungUp
//	 4  A worker that stalled past its lease wakes and overwrites what its
//	    successor recorded. aegra/aegra#502
//	    - idempotency TestFence/LockedKeyIsAFence
//	    - idempotency TestRecord/OneOfOwnerAndTakerWins
//	    - checkout TestPay/LateConfirmOfADeadOwnerCannotChargeAfterTheAttemptEnded
//	    - checkout TestGeneration/AZombiesIntentIsNotStored
//	    - e2e TestSweep/At/Purchase/DelayedPastTheLease
//	    - e2e TestSweep/At/Purchase/DelayedPastTheCompleter
//	 5  The retry rebuilds the provider's parameters, and the provider refuses
//	    its own key. letsrevel/revel-backend#803
//	    - checkout/stripepay TestEachCallSendsItsFrozenParameters
//	    - e2e TestFrozen
//	 6  The retry comes when the provider has forgotten the key, and charges or
//	    refunds afresh. square/connect-api-examples#135
//	    - checkout TestProtocol/AKeyThatWasReapedIsANewPayment
//	    - checkout TestProtocol/AConfirmIsNotRepeatedAfterItsWindow
//	    - checkout TestProtocol/ARefundIsNotSentAgainWhenStripeHasForgottenIt
//	    - e2e TestLongAfter/ACardThatWasChargedIsFoundChargedByTheSameKey
//	    - e2e TestLongAfter/ACardThatWasChargedIsFoundChargedWithoutTheBuyer
//	    - e2e TestLongAfter/ACardThatWasNotChargedIsNeverCharged
//	    - e2e TestLongAfter/MoneyThatWasGivenBackIsNotGivenBackAgain
//	 7  The loser of the claim looks for the winner's row, and finds none, or an
//	    error of the database. dj-stripe/dj-stripe#1239
//	    - idempotency TestClaim/VanishedRowIsClaimedAgain
//	    - idempotency TestClaim/RowThatKeepsVanishingIsContended
//	    - idempotency TestDo/LosersWaitForTheWinner
//	    - idempotency TestDo/WinnerRollsBackOneWaiterOwns
//	 8  A second card gets the first one's stored decline. openedx-
//	    unsupported/ecommerce#4156
//	    - checkout TestPay/DeclineReplaysAndTheNextKeyPays
//	    - checkout/stripepay TestDeclineIsDeclinedAgainUnderItsKeyAndNotUnderTheNext
//	    - e2e TestDecline
//	    - e2e TestBrowserDeclined
//	 9  The transport or the SDK sends a request again, or with another key, by
//	    itself. stripe/stripe-go#642
//	    - checkout/stripepay TestReusedConnectionThatDiesIsNotSentAgain
//	    - checkout/stripepay TestConcurrentConfirmIsTold
//	    - idempotency/retry TestDo/NoSendIsHiddenFromTheCaller
//	    - e2e TestRepeatedByAProxy
//	    - checkout/stripepay TestEachAnswerProvesWhatItProves
//	    - checkout/stripepay TestEachCallSendsItsFrozenParameters
//	10  Failures that should not stick to a key do, and outcomes that should do
//	    not. ietf-wg-httpapi/idempotency#41
//	    - web TestBadInputStoresNothing
//	    - web TestErrorsCarryWhatTheyAreAbout/AReusedKeySaysWhatBecameOfItsRequest
//	    - e2e TestBadInput
//	    - e2e TestRateLimited
//	    - e2e TestFaults
//	11  A replay differs from the first answer: in status, headers, bytes, or
//	    cut short. gofiber/fiber#4693
//	    - idempotency TestReplay/SameBytes
//	    - idempotency TestReplay/NoBodyIsAnAnswerToo
//	    - web TestStoredBytesAreSentAsTheyAre
//	    - e2e TestReplayIsOfItsTime
//	12  The same key on another operation, path or query replays a stranger's
//	    success. lakekeeper/lakekeeper#1959
//	    - idempotency TestFingerprint/AnotherRequest
//	    - e2e TestOneKey/CarriesOneRequestOnly
//	    - e2e TestBadInput/a query string on a payment
//	14  The event lands before the row that it is about, is answered 200, and is
//	    lost. duncanmcclean/statamic-cargo#190
//	    - checkout TestEvent/SuccessBeforeTheAnswerFencesTheOwner
//	    - checkout TestEvent/OursButNotKnownYetIsDeliveredAgainAndOneDayParked
//	15  The event is noted, then the process dies, and every redelivery is taken
//	    for a duplicate. juspay/hyperswitch#3408
//	    - checkout TestEvent/ARunningDeliveryIsNotAnswered200
//	    - checkout TestEvent/AmountThatIsNotTheOrdersIsParked
//	    - e2e TestSweep/At/Webhook/KilledBefore
//	16  Money arrives for an order that was canceled or had expired.
//	    woocommerce/woocommerce-gateway-stripe#5362
//	    - checkout TestExpiry/AChallengeThatWasPassedIsPaid
//	    - checkout TestExpiry/LateMoneyEndsInOneRefund
//	    - checkout TestAction/CancelThatIsLateSettlesTheSuccess
//	18  Several events, and the answer itself, tell of one payment in the same
//	    moment. pay-rails/pay#371
//	    - checkout TestEvent/DuplicatesAndTwoShopsApplyItOnce
//	    - e2e TestWayBackMeetsTheEvent
//	    - e2e TestRefundMeetsItsEvent
//	19  The event was faster than the way back, and the buyer is told that the
//	    payment failed. pretix/pretix#1233
//	    - checkout TestAction/PassedChallengeIsSettledOnTheWayBack
//	    - e2e TestWayBackMeetsTheEvent
//	    - e2e TestWithoutScript/AnUnknownOutcomeSaysDoNotPayAgainAndSendsTheSameKey
//	    - e2e TestBrowserReplyLost
//	21  Signatures: the wrong one of several, a secret that is rolled, a body
//	    that was touched, limits, versions. stripe/stripe-node#341
//	    - checkout TestEvent/ForgeriesChangeNothing
//	    - checkout TestEvent/AnotherVersionIsAHint
//	    - web TestTheSignatureIsTheOnlyProtection
//	    - e2e TestSignature
//	22  An event that is not ours, or whose amount, currency or order is not the
//	    payment's. solidusio/solidus_stripe#192
//	    - checkout TestEvent/NotOursIsIgnored
//	    - checkout TestEvent/WrongModeIsIgnored
//	    - checkout TestEvent/AmountThatIsNotTheOrdersIsParked
//	    - web TestTheWayBack/WithInventedParametersChangesNothing
//	23  Refunds in parts, from the dashboard, before their own answer, or
//	    failing days later. HiEventsDev/Hi.Events#1067
//	    - checkout TestRefund/PartialRefundsChangeNeitherOrderNorEnrolmentUntilAllIsGivenBack
//	    - checkout TestEvent/RefundsOfTheDashboardAreRecordedOneByOne
//	    - checkout TestMoneyThatShouldHaveGoneBackWaitsForAPerson
//	    - e2e TestRefundMeetsItsEvent
//	25  An event comes again weeks later, when the ledger has forgotten it.
//	    202-ecommerce/stripe_official#113
//	    - e2e TestRedelivered
//	27  Back and refresh: the frozen page is dead, or pays again.
//	    odoo/odoo#69725
//	    - e2e TestBrowserBack
//	28  Enter, a double click, a button that is disabled too early or too late.
//	    sveltejs/kit#11204
//	    - e2e TestBrowserPressedOften/EightSubmitsOfTheForm
//	    - e2e TestWithoutScript/EightSubmitsAtOnceEndOnOneReceipt
//	29  The client makes a new key per try, or keeps one for another purchase.
//	    akash-network/console#3449
//	    - idempotency/retry TestDo/ALostSendIsNotForgotten
//	    - e2e TestBrowserInMidFlight
//	    - e2e TestBrowserReplyLost/EndsWithTheReceipt
//	    - e2e TestBrowserReplyLost/EndsWithADeclineAndTheNextKey
//	    - e2e TestScriptCore
//	30  A token that changes with every try is part of the fingerprint, and an
//	    honest retry is refused. outline/outline#12888
//	    - idempotency TestFingerprint/SameRequest
//	    - e2e TestOneKey/IsTheSameQuotedAndBareInJSONAndInAForm
//	32  The way back from the bank: without cookies, twice, or never.
//	    craftcms/commerce#2737
//	    - web TestTheWayBack/InAnotherBrowserShowsTheShortAnswerAndNothingElse
//	    - web TestTheBankAsks/AndTheBuyerWalksAwayAndComesBack
//	    - checkout TestAction/CancelRacesTheChallengeAndExactlyOneWins
//	    - checkout TestCompleter/CancelsAnAbandonedChallengeAndAnotherCardChargesOnce
//	34  No secure context, no storage, no script: no key can be made, and
//	    nothing is sent. indexable-inc/index#218
//	    - e2e TestWithoutScript/ACourseIsBoughtByPlainFormsAndChargedOnce
//	    - e2e TestScriptCore
//	36  Odd keys: empty, blank, quoted, cased, too long.
//	    triggerdotdev/trigger.dev#3560
//	    - idempotency TestParseKey
//	    - idempotency TestParseKeyAcceptsWhatTheSchemaDoes
//	    - web TestKeysAreKeptAsTheyAre
//	    - e2e TestBadInput
//	38  The same request in other bytes is refused, and another request in the
//	    same bytes is not. aws-powertools/powertools-lambda-python#638
//	    - idempotency TestFingerprint/SameRequest
//	    - idempotency TestFingerprint/AnotherRequest
//	    - web TestFormAndJSONAreOneRequest
//	    - e2e TestBadInput
//	42  COMMIT was sent, and its answer is lost. (Reads at a replica do not
//	    apply: the shop reads where it writes.) jackc/pgx#787
//	    - idempotency TestCutLine
//	    - idempotency TestCommitInDoubt/TheRowDecidesAfterACheckpoint
//	    - e2e TestSweep/At/Purchase/Cut
//	43  Connections are held across the provider's call, and a canceled BEGIN
//	    leaves one dirty. knex/knex#1040
//	    - idempotency TestWait/HoldsNoConnection
//	    - idempotency TestClaim/OverloadedClaimsNothing
//	    - idempotency TestCommitInDoubt/HangUpBeforeCommitClaimsNothing
//	    - e2e TestCrowd
//	44  The sweeper takes what is in use, and the completer works beside the
//	    buyer and the event. killbill/killbill#338
//	    - idempotency TestReaper/RemovesFinishedKeysOnly
//	    - idempotency TestReaper/WaitsForNobody
//	    - checkout TestProtocol/ReaperKeepsAKeyWhosePaymentIsNotFinal
//	    - checkout TestCompleter/ManyAtOnceFinishEachKeyOnce
//	    - e2e TestSweep/At/Completer/KilledBefore
//	    - checkout TestCompleter/BacksOffAndThenWaitsForAPerson
//	    - cmd/shop TestStuck/ListsWhatWaitsForAPersonAndGivesItBack
//	47  A key of one account finds, or blocks, that of another; a replay gives
//	    away a session or a secret. julik/idempo#29
//	    - e2e TestOneKey/OfAnotherAccountIsAnotherKey
//	    - idempotency TestReading/NobodySeesAnotherScope
//	    - web TestReplaysAreNotBelievedFromTheClient
//	    - web TestTheBankAsks/TheAnswerHoldsNoSecretAndNoAddressOfTheBank
//	    - web TestCrossSite
package e2e
